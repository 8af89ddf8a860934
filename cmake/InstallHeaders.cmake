# Run by `cmake --install`: copies the public headers of HOLDFAST_HEADER_LAYERS from HOLDFAST_SOURCE to
# HOLDFAST_HEADER_FOLDER.
#
# Public is every header of a layer, but for
#   - device/cuda and device/host: the two implementations of device/device.h, which include the driver's headers;
#   - those whose head comment says "Private to FOLDER/".
# tests/install/headers_test.py holds that no public header includes a private one.
#
# Includes of ours are rewritten from "allocator/arena.h" to "holdfast/allocator/arena.h": programs have folders called
# runtime/ and device/ too, and theirs would be found first.
foreach(layer IN LISTS HOLDFAST_HEADER_LAYERS)
  file(GLOB_RECURSE headers RELATIVE ${HOLDFAST_SOURCE} ${HOLDFAST_SOURCE}/${layer}/*.h)
  foreach(header IN LISTS headers)
    if(header MATCHES "^device/(cuda|host)/")
      continue()
    endif()
    file(READ ${HOLDFAST_SOURCE}/${header} text)
    string(FIND "${text}" "#ifndef" head_length)
    string(SUBSTRING "${text}" 0 ${head_length} head)
    if(head MATCHES "Private[ \n/]+to[ \n/]")
      continue()
    endif()
    string(REPLACE ";" "|" alternatives "${HOLDFAST_HEADER_LAYERS}")
    string(REGEX REPLACE "(#include \")((${alternatives})/)" "\\1holdfast/\\2" text "${text}")

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
