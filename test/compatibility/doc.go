// Package compatibility compares the served API with the published API of the v1beta1 ecosystem: every field with its type,
// constraints, default and whether it is required, every name, printer column and subresource.
//
// It compares the generated CRDs with reference data that is not part of this repository. The environment variable
// CAPI_FACTS_DIR is the path; without reference data, the tests are skipped. Tests of behavior do not belong here.
package compatibility
