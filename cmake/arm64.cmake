# Toolchain of an arm64 build on another machine: Debian's cross compiler, libraries of tools/arm64-sysroot
# (LS_SYSROOT), programs run by qemu-user. `make test-arm64` uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LS_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${LS_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_C_FLAGS_INIT "-isystem ${LS_SYSROOT}/usr/include -isystem ${LS_SYSROOT}/usr/include/aarch64-linux-gnu")
foreach(kind EXE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT
      "-L${LS_SYSROOT}/usr/lib/aarch64-linux-gnu -L${LS_SYSROOT}/lib/aarch64-linux-gnu -Wl,-rpath-link,${LS_SYSROOT}/usr/lib/aarch64-linux-gnu:${LS_SYSROOT}/lib/aarch64-linux-gnu -Wl,--disable-new-dtags,-rpath,${LS_SYSROOT}/usr/lib/aarch64-linux-gnu:${LS_SYSROOT}/lib/aarch64-linux-gnu"
  )
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} "${LS_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${LS_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${LS_SYSROOT}")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;/usr/aarch64-linux-gnu")
