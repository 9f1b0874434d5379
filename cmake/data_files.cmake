# Data files that are built into the library: recipes of sweeps, published figures, and comparisons of the planner.
include(cmake/embed.cmake)
file(GLOB recipes CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/recipes/*.json)
ls_embed(MODULE sweep FILES ${recipes} HEADER tools/sweep/recipe.h TYPE ls_recipe ARRAY ls_recipes_built_in)
install(FILES ${recipes} DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/recipes COMPONENT command)

file(GLOB published CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/published/*.csv)
ls_embed(MODULE results FILES ${published} HEADER tools/results/published.h TYPE ls_published_file ARRAY ls_published_built_in)
install(FILES ${published} DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/published COMPONENT command)

# What bench/planner measured: the planner's intervals are made of its errors.
ls_embed(MODULE forecast FILES ${CMAKE_SOURCE_DIR}/bench/planner.csv HEADER tools/forecast/interval.h TYPE ls_lab_file
         ARRAY ls_lab_comparisons)
