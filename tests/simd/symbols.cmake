# Code compiled for one instruction set must not leak into programs that run
# without it: the linker keeps one copy of an inline function, whichever file it
# comes from. So a kernel object may define nothing but its own kernels.
# cmake -DNM=... -DISA=... -DOBJECTS=... -P symbols.cmake
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --defined-only --demangle ${object} OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
  foreach(line IN LISTS lines)
    if(line MATCHES " [WVu] " AND NOT line MATCHES "(find_[a-z]+|meeting)<|__gxx_personality")
      message(FATAL_ERROR "${object} defines a shared symbol that other code could end up with: ${line}")
    endif()
  endforeach()
endforeach()
