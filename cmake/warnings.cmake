# Warnings are errors in CI alone: a compiler that is newer than this tree must not keep anybody from building it.
option(LS_WERROR "Treat warnings as errors (always so where CI=true is in the environment)" OFF)
if("$ENV{CI}")
  set(LS_WERROR ON)
endif()
