/* SPDX-License-Identifier: BSD-3-Clause */
/* The component structure that Open MPI looks up by name: the only exported symbol. */
#include "compat.h"

__attribute__((visibility("default"))) tagline_pml_component_t mca_pml_tagline_component = {
    .pmlm_version =
        {
            TAGLINE_PML_VERSION,
            .mca_component_name = "tagline",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                  OMPI_RELEASE_VERSION),
            .mca_open_component = tagline_component_open,
            .mca_close_component = tagline_component_close,
            .mca_register_component_params = tagline_component_register,
        },
    .pmlm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .pmlm_init = tagline_component_init,
    .pmlm_finalize = tagline_component_finalize,
};
