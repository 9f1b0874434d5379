# Data files that are built into the library: recipes of sweeps, and published figures.
include(cmake/embed.cmake)
file(GLOB recipes CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/recipes/*.json)
ls_embed(MODULE sweep FILES ${recipes} HEADER tools/sweep/recipe.h TYPE ls_recipe ARRAY ls_recipes_built_in)
install(FILES ${recipes} DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/recipes)

file(GLOB published CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/published/*.csv)
ls_embed(MODULE results FILES ${published} HEADER tools/results/published.h TYPE ls_published_file ARRAY ls_published_built_in)
install(FILES ${published} DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/published)
