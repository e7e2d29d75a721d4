package inventory

import _ "embed" // for the directive below

//go:embed crd/clusterctl.cluster.x-k8s.io_providers.yaml
var definition []byte

// CRD returns the manifest of the CRD of Provider objects, which record the installed providers.
func CRD() []byte {
	return definition
}
