// SPDX-License-Identifier: BSD-3-Clause
// The component's start as it would be compiled for release 99 of the same series: the
// structures are the installed ones, the number that is compared is not.
#include "ompi-plugin/compat.h"

#undef OMPI_RELEASE_VERSION
#define OMPI_RELEASE_VERSION 99
#include "ompi-plugin/component.cpp"
