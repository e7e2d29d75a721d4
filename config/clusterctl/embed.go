// Package clusterctl embeds the manifests that clusterctl itself installs in a management cluster.
//
// The manifests are generated from the types in api/clusterctl; no other code belongs here.
package clusterctl

import _ "embed" // for the directive below

//go:embed crd/clusterctl.cluster.x-k8s.io_providers.yaml
var inventoryCRD []byte

// InventoryCRD returns the manifest of the CRD of Provider objects, which record the installed providers.
func InventoryCRD() []byte {
	return inventoryCRD
}
