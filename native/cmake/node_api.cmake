# The two addons. Their headers come from npm packages, wherever npm put them.
set(GNND_NODE_API "${CMAKE_SOURCE_DIR}/node_modules/node-api-headers/include;${CMAKE_SOURCE_DIR}/node_modules/node-addon-api"
  CACHE STRING "Folders of node_api.h and napi.h")
add_library(node_api INTERFACE)
target_include_directories(node_api SYSTEM INTERFACE ${GNND_NODE_API})
target_compile_definitions(node_api INTERFACE
  NAPI_VERSION=9 NODE_ADDON_API_CPP_EXCEPTIONS NODE_ADDON_API_CPP_EXCEPTIONS_ALL
  NODE_ADDON_API_DISABLE_DEPRECATED)

function(gnnd_addon name)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".node"
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PRIVATE node_api)
  # A border has no loops, and optimizing it more is a third of its compilation. Sums are the same,
  # since no option here lets a compiler change one.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
endfunction()

file(GLOB core_bindings CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/node/core/*.cc)
gnnd_addon(gnnd_core_addon ${core_bindings})
set_target_properties(gnnd_core_addon PROPERTIES OUTPUT_NAME gnnd_core)
target_link_libraries(gnnd_core_addon PRIVATE gnnd_core)

if(GNND_TRAIN)
  file(GLOB train_bindings CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/node/train/*.cc)
  gnnd_addon(gnnd_train_addon ${train_bindings})
  set_target_properties(gnnd_train_addon PROPERTIES OUTPUT_NAME gnnd_train)
  target_link_libraries(gnnd_train_addon PRIVATE gnnd_train)
endif()
