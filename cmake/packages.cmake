# Debian packages, by `make deb` or cpack: liblockstep0 (the shared libraries), liblockstep-dev (headers, static libraries,
# pkg-config, CMake, examples) and lockstep (the command). What they depend on, dpkg-shlibdeps finds in the binaries.
include(${CMAKE_SOURCE_DIR}/cmake/maintainer.cmake)
ls_find_maintainer(maintainer)
set(LS_MAINTAINER "${maintainer}" CACHE STRING "Maintainer of the packages: Name <mail>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "lockstep built using CMake") # its default: a description begins with its own
set(CPACK_PACKAGE_VENDOR "Lockstep developers")
set(CPACK_PACKAGE_CONTACT "${LS_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL library development command)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_files.cmake)
set(CPACK_LS_SOURCE_DIR ${CMAKE_SOURCE_DIR})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})

set(soname ${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME liblockstep${soname})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/triggers)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "data-parallel deep-learning trainer, libraries
Lockstep trains neural networks on CPUs, from one core to a cluster, and the
trained weights have the same bits however the work is distributed.

This package has the shared libraries.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME liblockstep-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "liblockstep${soname} (= ${PROJECT_VERSION}), libc6-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "pkgconf, cmake, libjansson-dev, zlib1g-dev, libcurl4-openssl-dev, libxxhash-dev, libhwloc-dev, libutf8proc-dev, libpng-dev, libturbojpeg0-dev, libmicrohttpd-dev, libopenmpi-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "data-parallel deep-learning trainer, development files
Lockstep trains neural networks on CPUs, from one core to a cluster, and the
trained weights have the same bits however the work is distributed.

This package has what programs that use the libraries are compiled with:
headers, static libraries, pkg-config files, a CMake package and examples.")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME lockstep)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "liblockstep${soname} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "ca-certificates, openmpi-bin")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "iproute2, openssh-client, slurm-client")
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "data-parallel deep-learning trainer
Lockstep trains neural networks on CPUs, from one core to a cluster, and the
trained weights have the same bits however the work is distributed. It
measures how fast that is and predicts how fast a larger cluster would be.

This package has the command with its manual pages and completions.")

include(CPack)
