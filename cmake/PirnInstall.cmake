# SPDX-License-Identifier: MIT
# What `make install` puts where: headers, both libraries, a pkg-config file, a
# CMake package and, where they exist, the command and the manual pages.
include(CMakePackageConfigHelpers)

set(pirn_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Pirn)

install(TARGETS pirn pirn_static EXPORT PirnTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET pirn_command)
    install(TARGETS pirn_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/pirn
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT PirnTargets NAMESPACE Pirn:: DESTINATION ${pirn_package_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/PirnConfig.cmake.in
    ${PROJECT_BINARY_DIR}/PirnConfig.cmake
    INSTALL_DESTINATION ${pirn_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PirnConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PirnConfig.cmake
    ${PROJECT_BINARY_DIR}/PirnConfigVersion.cmake
    DESTINATION ${pirn_package_dir})

# The pkg-config file finds the prefix from its own place, so that the tree can
# be moved; an absolute folder is taken as it is.
set(pirn_pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    file(RELATIVE_PATH pirn_pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" pirn_pc_up ${pirn_pc_up})
    set(pirn_pc_prefix "\${pcfiledir}/${pirn_pc_up}")
endif()
foreach(folder libdir includedir)
    string(TOUPPER ${folder} upper)
    set(pirn_pc_${folder} ${CMAKE_INSTALL_${upper}})
    if(NOT IS_ABSOLUTE ${pirn_pc_${folder}})
        set(pirn_pc_${folder} "\${prefix}/${pirn_pc_${folder}}")
    endif()
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/pirn.pc.in
    ${PROJECT_BINARY_DIR}/pirn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pirn.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

include(PirnManual)
if(TARGET pirn_man)
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/
        DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
endif()
