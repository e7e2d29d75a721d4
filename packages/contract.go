package packages

import (
	"slices"
	"strings"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
)

const (
	// Contract is the API contract that the metadata.yaml of this project's releases names.
	Contract = contractV1Beta1

	contractV1Beta1, contractV1Beta2 = "v1beta1", "v1beta2"
	// major is the major version of this project's releases whose core provider works with all Contracts.
	major = 2
)

// Contracts returns the API contracts that this project supports, as in metadata.yaml files, the oldest first.
func Contracts() []string { return []string{contractV1Beta1, contractV1Beta2} }

// JoinContracts returns contracts for messages.
func JoinContracts(list []string) string { return strings.Join(list, " and ") }

// Core is a version of the core provider.
type Core struct {
	// Name is the provider's name, Version a semantic version.
	Name, Version string
	// Contract is what its metadata.yaml names; "" if that is unknown.
	Contract string
}

// IsOurs reports whether it is of this project, so that its contracts are known without its metadata.
func (c Core) IsOurs() bool {
	v, err := ParseVersion(c.Version)
	return err == nil && c.Name == clusterctlv1.ClusterAPIProviderName && v.Major == major &&
		(c.Contract == "" || slices.Contains(Contracts(), c.Contract))
}

// Contracts returns the contracts of the providers that it works with, the oldest first: a core provider for v1beta2 also works with those
// for v1beta1, and that of this project with both, whatever its metadata names.
func (c Core) Contracts() []string {
	switch {
	case c.IsOurs() || c.Contract == contractV1Beta2:
		return Contracts()
	case c.Contract == "":
		return nil
	}
	return []string{c.Contract}
}

// Implements reports whether a choice of versions for a contract includes it: what its metadata names, or any of Contracts if it is of this
// project.
func (c Core) Implements(contract string) bool {
	return c.Contract == contract || c.IsOurs() && c.Supports(contract)
}

// Supports reports whether it works with providers of a contract.
func (c Core) Supports(contract string) bool { return slices.Contains(c.Contracts(), contract) }
