# SANITIZER=address|undefined|thread, from the environment or -DSANITIZER=.
set(SANITIZER "" CACHE STRING "address, undefined or thread")
if(SANITIZER)
  add_compile_options(-fsanitize=${SANITIZER} -fno-omit-frame-pointer -fno-sanitize-recover=all -O1)
  add_link_options(-fsanitize=${SANITIZER})
endif()
