// Package components turns a provider's published manifests into the objects that are installed for it.
//
// Everything here is a pure function of its input: nothing is downloaded and nothing is written. Downloading is package
// repository's matter; writing is its callers'.
package components
