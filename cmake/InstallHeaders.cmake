# Run by `cmake --install`: copies the public headers of HOLDFAST_HEADER_LAYERS from HOLDFAST_SOURCE to
# HOLDFAST_HEADER_FOLDER.
#
# Includes of ours are rewritten from "allocator/arena.h" to "holdfast/allocator/arena.h": programs have folders called
# runtime/ and device/ too, and theirs would be found first.
include(${CMAKE_CURRENT_LIST_DIR}/PublicHeaders.cmake)

string(REPLACE ";" "|" layers "${HOLDFAST_HEADER_LAYERS}")
foreach(layer IN LISTS HOLDFAST_HEADER_LAYERS)
  holdfast_public_headers(headers ${HOLDFAST_SOURCE} ${layer})
  foreach(header IN LISTS headers)
    file(READ ${HOLDFAST_SOURCE}/${header} text)
    string(REGEX REPLACE "(#include \")((${layers})/)" "\\1holdfast/\\2" text "${text}")
    set(installed ${HOLDFAST_HEADER_FOLDER}/${header})
    set(there "")
    if(EXISTS ${installed})
      file(READ ${installed} there)
    endif()
    # An equal file stays as it is, so that who includes it is not built again.
    if(NOT there STREQUAL text)
      message(STATUS "Installing: ${installed}")
      file(WRITE ${installed} "${text}")
    endif()
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${installed})
  endforeach()
endforeach()
