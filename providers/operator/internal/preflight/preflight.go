// Package preflight checks whether a provider object can be installed, before anything is downloaded or written: a pure function of
// all provider objects.
package preflight

import (
	"fmt"
	"slices"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Failure is a check that failed.
type Failure struct {
	// Reason is a reason of the condition PreflightCheckPassed.
	Reason, Message string
}

// Check returns the first check that fails, or nil. all are all provider objects, known the providers with built-in locations.
func Check(p providerobject.Provider, all []providerobject.Provider, known []packages.Provider) *Failure {
	for _, check := range []func() *Failure{
		func() *Failure { return version(p) },
		func() *Failure { return downgrade(p) },
		func() *Failure { return coreName(p) },
		func() *Failure { return location(p, known) },
		func() *Failure { return duplicate(p, all) },
		func() *Failure { return waitsForCore(p, all) },
	} {
		if failed := check(); failed != nil {
			return failed
		}
	}
	return nil
}

func failure(reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func version(p providerobject.Provider) *Failure {
	text := p.GetSpec().Version
	if text == "" {
		return nil
	}
	if _, err := packages.ParseVersion(text); err != nil || text[0] != 'v' {
		return failure(operatorv1.IncorrectVersionFormatReason,
			"spec.version %q is not a semantic version with the prefix v, such as v1.7.4", text)
	}
	return nil
}

// downgrade rejects an older minor version: stored objects may have fields that it does not know.
func downgrade(p providerobject.Provider) *Failure {
	installed := p.GetStatus().InstalledVersion
	if installed == nil || p.GetSpec().Version == "" {
		return nil
	}
	before, err := packages.ParseVersion(*installed)
	if err != nil {
		return nil // It was not written by this operator, and nothing is known about it.
	}
	after, err := packages.ParseVersion(p.GetSpec().Version)
	if err != nil {
		return failure(operatorv1.IncorrectVersionFormatReason, "spec.version: %v", err)
	}
	if after.Major < before.Major || after.Major == before.Major && after.Minor < before.Minor {
		return failure(operatorv1.UnsupportedProviderDowngradeReason,
			"spec.version %s is of an older minor version than the installed %s: downgrades are not supported", p.GetSpec().Version, *installed)
	}
	return nil
}

func coreName(p providerobject.Provider) *Failure {
	if p.Type == clusterctlv1.CoreProviderType && p.GetName() != clusterctlv1.ClusterAPIProviderName {
		return failure(operatorv1.IncorrectCoreProviderNameReason, "metadata.name of a CoreProvider must be %s",
			clusterctlv1.ClusterAPIProviderName)
	}
	return nil
}

func location(p providerobject.Provider, known []packages.Provider) *Failure {
	config := p.GetSpec().FetchConfig
	if config == nil {
		if !slices.ContainsFunc(known, func(k packages.Provider) bool { return k.Type == p.Type && k.Name == p.GetName() }) {
			return failure(operatorv1.UnknownProviderReason,
				"the location of %s %s is not built in: set spec.fetchConfig, or correct metadata.name", p.Type, p.GetName())
		}
		return nil
	}
	given := 0
	for _, is := range []bool{config.OCI != "", config.URL != "", config.Selector != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return failure(operatorv1.FetchConfigValidationErrorReason, "spec.fetchConfig must have exactly one of url, selector and oci")
	}
	return nil
}

// duplicate rejects a second object for the same provider, and a second core provider. The first one, by creation and namespace,
// goes on.
func duplicate(p providerobject.Provider, all []providerobject.Provider) *Failure {
	for _, other := range all {
		if other.Type != p.Type || other.GetUID() == p.GetUID() {
			continue
		}
		if (other.GetName() == p.GetName() || p.Type == clusterctlv1.CoreProviderType) && isFirst(other, p) {
			return failure(operatorv1.MoreThanOneProviderInstanceExistsReason,
				"%s exists: a management cluster can have one of each provider: delete one of both objects", other)
		}
	}
	return nil
}

func isFirst(a, b providerobject.Provider) bool {
	x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if !x.Equal(&y) {
		return x.Before(&y)
	}
	return a.GetNamespace()+"/"+a.GetName() < b.GetNamespace()+"/"+b.GetName()
}

// waitsForCore waits for the core provider, unless the provider is installed already.
func waitsForCore(p providerobject.Provider, all []providerobject.Provider) *Failure {
	if p.Type == clusterctlv1.CoreProviderType || p.GetStatus().InstalledVersion != nil {
		return nil
	}
	var core *providerobject.Provider // Of several, the first one, which is the one that is installed.
	for i := range all {
		if all[i].Type == clusterctlv1.CoreProviderType && coreName(all[i]) == nil && (core == nil || isFirst(all[i], *core)) {
			core = &all[i]
		}
	}
	if core == nil {
		return failure(operatorv1.WaitingForCoreProviderReadyReason, "Waiting for a CoreProvider to exist")
	}
	if !condition.IsTrue(core, operatorv1.ReadyCondition) {
		return failure(operatorv1.WaitingForCoreProviderReadyReason, "Waiting for %s to be ready", core)
	}
	return nil
}
