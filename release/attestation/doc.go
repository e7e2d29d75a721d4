// Package attestation writes what is published about artifacts: where they come from, as in-toto statements with SLSA's predicate,
// version 1, and a program's bill of materials, as an SPDX document: the modules that it links, their versions, their checksums as in
// go.sum, and their licenses. All of it is read from the executable, except licenses, which are in the module cache.
package attestation
