# gnnd_core: graphs, samples, segments. It needs neither torch nor Node.
file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/core/*.cc)
list(REMOVE_ITEM core_sources ${loop_sources})
add_library(gnnd_core STATIC ${core_sources} ${loop_objects} $<TARGET_OBJECTS:gnnd_build_id>)
target_link_libraries(gnnd_core PUBLIC gnnd_options ${CMAKE_DL_LIBS})
