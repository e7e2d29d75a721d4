package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestConditionsOfThePast: conditions are about the present spec, as observedGeneration says; what has been withdrawn leaves no False one.
func TestConditionsOfThePast(t *testing.T) {
	next := simpleConfigMap("x-system", "x", "v1.0.1")
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"), next)
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	reconciled := func(p providerobject.Provider, spec string) providerobject.Provider {
		t.Helper()
		w.change(p, spec)
		p = w.reconcile(p)
		if p.GetStatus().ObservedGeneration != p.GetGeneration() {
			t.Errorf("after %s, generation %d is observed, want %d", spec, p.GetStatus().ObservedGeneration, p.GetGeneration())
		}
		return p
	}
	none := func(reason string) {
		t.Helper()
		for _, kind := range []string{"ProviderUpgraded", "ProviderInstalled"} {
			for _, c := range p.GetStatus().Conditions {
				if c.Type == kind && c.Status == "False" {
					t.Errorf("%s: %s is False: %s", reason, kind, c.Message)
				}
			}
		}
	}
	w.engine.Timeout, w.unavailable = 50*time.Millisecond, true
	p = reconciled(p, `{manager: {verbosity: 3}}`)
	w.reports(p, operatorv1.ProviderInstalledCondition, "False ComponentsUpgradeError")
	if condition.Get(p, operatorv1.ProviderUpgradedCondition) != nil {
		t.Error("a change without another version counts as an upgrade")
	}
	p = reconciled(p, `{manager: null, version: v1.0.1}`)
	w.reports(p, operatorv1.ProviderInstalledCondition, "False ComponentsUpgradeError")
	w.reports(p, operatorv1.ProviderUpgradedCondition, "False ComponentsUpgradeError")
	w.unavailable = false
	p = reconciled(p, `{version: v1.0.0}`)
	none("an upgrade that was withdrawn")
	p = reconciled(p, `{version: v1.0.9}`)
	w.reports(p, operatorv1.ProviderInstalledCondition, "False")
	p = reconciled(p, `{version: v0.9.0}`)
	w.reports(p, operatorv1.PreflightCheckCondition, "False UnsupportedProviderDowngradeReason")
	none("a version that is rejected")
	p = reconciled(p, `{version: v1.0.1, secretName: missing}`)
	w.reports(p, operatorv1.ProviderInstalledCondition, "False", "Secret x-system/missing does not exist")
	p = reconciled(p, `{secretName: null}`)
	w.reports(p, operatorv1.ProviderUpgradedCondition, "True")
	none("an upgrade")
}

// TestConfigurationIsNoDrift: nobody else is blamed for what the operator's own configuration changes.
func TestConfigurationIsNoDrift(t *testing.T) {
	w := newWorld(t, simpleConfigMap("x-system", "x", "v1.0.0"))
	w.create(simpleProvider)
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.Events()
	read := w.source.Config
	w.source.Config = func(ctx context.Context) (*config.Config, error) {
		cfg, err := read(ctx)
		if err == nil {
			cfg.Images = components.ImageOverrides{"all": {Repository: "mirror.internal/all"}}
		}
		return cfg, err
	}
	w.controllers = map[clusterctlv1.ProviderType]*Controller{} // The operator is started again.
	p = w.reconcile(p)
	if got := strings.Join(w.Events(), "\n"); !strings.Contains(got, "Changed Changed Deployment") || strings.Contains(got, "DriftCorrected") {
		t.Errorf("after a change of the configuration: %s", got)
	}
	d := w.deployment("x-system", "x")
	if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "mirror.internal/all/") {
		t.Errorf("image %s", image)
	}
	d.Spec.Template.Spec.Containers[0].Image, d.Generation = "other", d.Generation+1
	testenv.Must(t, w.Update(t.Context(), d))
	w.reconcile(p)
	if got := strings.Join(w.Events(), "\n"); !strings.Contains(got, "DriftCorrected") {
		t.Errorf("after a change by another client: %s", got)
	}
}

// TestSourceWithoutVersion: a new source alone changes nothing, which is said once.
func TestSourceWithoutVersion(t *testing.T) {
	w := newWorld(t)
	w.hosts[gitlabHost] = serveFiles("x", "v1.0.0")
	page := "https://" + gitlabHost + packagePath("x", "v1.0.0")
	w.create(strings.Replace(simpleProvider, "selector: {matchLabels: {provider-components: x}}", "url: '"+page+"infrastructure-components.yaml'", 1))
	p := w.reconcile(w.provider("InfrastructureProvider", "x-system", "x"))
	w.reports(p, operatorv1.ProviderInstalledCondition, "True")
	count := func(want int) {
		t.Helper()
		events := slices.DeleteFunc(w.Events(), func(e string) bool { return !strings.Contains(e, "SourceNotUsed") })
		if len(events) != want {
			t.Errorf("got %d events, want %d: %v", len(events), want, events)
		}
	}
	count(0)
	w.change(p, `{fetchConfig: {url: "https://elsewhere.example/x.yaml"}}`)
	p = w.reconcile(p)
	count(1)
	p = w.reconcile(p)
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(p.Object), p.Object))
	w.reconcile(p)
	count(0)
}
