package invariant

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// component returns an object of the infrastructure provider.
func component(kind, name string) *unstructured.Unstructured {
	o := object(kind, name, nil)
	o.SetLabels(map[string]string{clusterv1.ProviderNameLabel: "infrastructure-in-memory"})
	return o
}

// deployment returns the Deployment of the infrastructure provider.
func deployment(generation int64, version, available string) *unstructured.Unstructured {
	d := component("Deployment", "capim-controller-manager")
	d.SetGeneration(generation)
	d.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "manager", "image": "registry/capim-manager:" + version},
	}}}}
	d.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": available}}}
	return d
}

// Rules of provider objects.
const (
	createdTwice = "no object of a provider is created twice"
	deleted      = "no definition, Namespace or object of a user is deleted"
	needed       = "a provider that a Cluster needs is not deleted"
	served       = "webhooks always have a Service and an available Deployment"
	few          = "no Deployment is changed more often than required"
	same         = "finally, inventory and Deployments have the same versions, and no journal is left"
)

// journalSecret is the journal of an upgrade.
func journalSecret() *unstructured.Unstructured {
	journal := component("Secret", "clusterctl-upgrade-infrastructure-in-memory")
	labels := journal.GetLabels()
	labels[clusterctlv1.ClusterctlCoreLabel] = "upgrade"
	journal.SetLabels(labels)
	return journal
}

// again is an object with the same name that was created later.
func again(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetUID(o.GetUID() + types.UID("-again"))
	return o
}

// TestRulesOfOperator checks that each rule of provider objects can be violated, independently of the others.
func TestRulesOfOperator(t *testing.T) {
	service := component("Service", "capim-webhook-service")
	declared := object("InfrastructureProvider", "in-memory", nil)
	entry := func(version string) *unstructured.Unstructured {
		o := component("Provider", "infrastructure-in-memory")
		o.Object["version"] = version
		return o
	}
	journal := journalSecret()
	upgraded := func(s *builder) {
		s.event(watch.Modified, deployment(2, "v2", "True"))
		s.event(watch.Modified, entry("v2"))
	}
	tests := []struct {
		reason string
		change func(s *builder)
		want   []string
	}{
		{reason: "an upgrade", change: func(s *builder) {
			s.event(watch.Added, journal)
			upgraded(s)
			s.event(watch.Deleted, journal)
		}},
		{reason: "an upgrade that is started twice, with two journals", change: func(s *builder) {
			s.event(watch.Added, journal)
			s.event(watch.Deleted, journal)
			s.event(watch.Added, again(journal))
			upgraded(s)
			s.event(watch.Deleted, again(journal))
		}},
		{reason: "a journal is left", want: []string{same}, change: func(s *builder) {
			s.event(watch.Added, journal)
			upgraded(s)
		}},
		{reason: "the inventory has the previous version", want: []string{same}, change: func(s *builder) {
			s.event(watch.Modified, deployment(2, "v2", "True"))
		}},
		{reason: "the inventory has a provider without Deployment", want: []string{same}, change: func(s *builder) {
			other := entry("v1")
			other.SetName("infrastructure-other")
			s.event(watch.Added, other)
		}},
		{reason: "the Deployment is restored, and upgraded again", want: []string{few}, change: func(s *builder) {
			s.event(watch.Modified, deployment(2, "v2", "True"))
			s.event(watch.Modified, deployment(3, "v1", "True"))
			s.event(watch.Modified, deployment(4, "v2", "True"))
			s.event(watch.Modified, entry("v2"))
		}},
		{reason: "the new Pods are not available, and the old ones were ended", want: []string{served}, change: func(s *builder) {
			s.event(watch.Modified, deployment(2, "v2", "False"))
			upgraded(s)
		}},
		{reason: "the Service is missing for a moment", want: []string{createdTwice, served}, change: func(s *builder) {
			s.event(watch.Deleted, service)
			s.event(watch.Added, again(service))
		}},
		{reason: "the provider object is deleted", change: func(s *builder) {
			s.event(watch.Modified, deleting(declared))
			s.event(watch.Deleted, deployment(1, "v1", "True"))
			s.event(watch.Deleted, service)
			s.event(watch.Deleted, entry("v1"))
			s.event(watch.Deleted, declared)
		}},
		{reason: "the provider object is deleted while a Cluster needs it", want: []string{needed}, change: func(s *builder) {
			s.event(watch.Added, object("InMemoryCluster", "needed", nil))
			s.event(watch.Modified, deleting(declared))
			s.event(watch.Deleted, component("ConfigMap", "c"))
		}},
		{reason: "definitions are deleted with their provider", want: []string{deleted}, change: func(s *builder) {
			s.event(watch.Modified, deleting(declared))
			s.event(watch.Deleted, component("CustomResourceDefinition", "inmemoryclusters"))
		}},
		{reason: "so are objects of users", want: []string{deleted}, change: func(s *builder) {
			s.event(watch.Modified, deleting(declared))
			s.event(watch.Deleted, object("InMemoryMachineTemplate", "users", nil))
		}},
		{reason: "a RoleBinding that cannot be changed is created again", change: func(s *builder) {
			s.event(watch.Deleted, component("RoleBinding", "recreated"))
			s.event(watch.Added, again(component("RoleBinding", "recreated")))
		}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := &builder{}
			for _, o := range []*unstructured.Unstructured{
				declared, service, entry("v1"), deployment(1, "v1", "True"), component("RoleBinding", "recreated"), component("ConfigMap", "c"),
				component("CustomResourceDefinition", "inmemoryclusters"), object("InMemoryMachineTemplate", "users", nil),
			} {
				s.event(watch.Added, o)
			}
			start := len(s.events)
			test.change(s)
			if diff := cmp.Diff(test.want, brokenByOperator(s, start)); diff != "" {
				t.Errorf("violated rules (-want +got):\n%s", diff)
			}
		})
	}
}

// brokenByOperator returns the rules that the events from start on violate.
func brokenByOperator(s *builder, start int) []string {
	run := Run{
		Scenario: scenario.Scenario{Operator: true, Limits: scenario.Limits{Specs: 3}, Recreated: []string{"recreated"}},
		Before:   s.events[:start], Timeline: s.events[start:],
	}
	var broken []string
	for _, v := range Check(run) {
		broken = append(broken, v.Rule)
	}
	return broken
}

// TestShapeOfProviders: the namespace of the run, addresses and CA bundles differ from run to run, roles do not.
func TestShapeOfProviders(t *testing.T) {
	build := func(namespace, address, bundle, role string) []string {
		s := &builder{}
		service := component("Service", "s")
		service.Object["spec"] = map[string]any{"clusterIP": address, "ipFamilyPolicy": "SingleStack"}
		webhook := component("ValidatingWebhookConfiguration", "w")
		webhook.Object["webhooks"] = []any{map[string]any{"clientConfig": map[string]any{"caBundle": bundle, "service": map[string]any{"namespace": namespace}}}}
		binding := component("RoleBinding", "b")
		binding.Object["roleRef"] = map[string]any{"name": role}
		for _, o := range []*unstructured.Unstructured{service, webhook, binding} {
			s.event(watch.Added, o)
		}
		return Shape(s.now)
	}
	baseline := build("f0001", "10.0.0.1", "a", "r")
	if diff := cmp.Diff(baseline, build("f0002", "10.0.0.2", "b", "r")); diff != "" {
		t.Errorf("only what differs from run to run differs (-baseline +now):\n%s", diff)
	}
	for reason, other := range map[string][]string{
		"another role": build("f0001", "10.0.0.1", "a", "other"), "no CA bundle": build("f0001", "10.0.0.1", "", "r"),
		"a Service of another namespace": build("default", "10.0.0.1", "a", "r"),
	} {
		if cmp.Diff(baseline, other) == "" {
			t.Errorf("%s makes no difference", reason)
		}
	}
}
