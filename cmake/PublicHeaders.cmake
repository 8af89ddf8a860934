# holdfast_public_headers(VARIABLE SOURCE LAYER): the headers of a layer that other projects may include, as paths from
# the root SOURCE. Public is every header of a layer, but for
#   - device/cuda and device/host: the two implementations of device/device.h, which include the driver's headers;
#   - those whose head comment says "Private to FOLDER/".
# tests/install holds that no public header includes a private one.
function(holdfast_public_headers variable source layer)
  set(public)
  file(GLOB_RECURSE headers RELATIVE ${source} ${source}/${layer}/*.h)
  foreach(header IN LISTS headers)
    file(READ ${source}/${header} text)
    string(FIND "${text}" "#ifndef" head_length)
    string(SUBSTRING "${text}" 0 ${head_length} head)
    if(NOT header MATCHES "^device/(cuda|host)/" AND NOT head MATCHES "Private[ \n/]+to[ \n/]")
      list(APPEND public ${header})
    endif()
  endforeach()
  set(${variable} ${public} PARENT_SCOPE)
endfunction()
