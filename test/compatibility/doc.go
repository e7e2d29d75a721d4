// Package compatibility holds the API that is served against the published API of the v1beta1 ecosystem: every field, with its
// type, constraints, default and whether it is required, every name, printer column and subresource.
//
// It compares the generated CustomResourceDefinitions with reference data that is not part of this repository. The environment
// variable CAPI_FACTS_DIR says where that is; the tests skip without it. Behaviour behind the API does not belong here.
package compatibility
