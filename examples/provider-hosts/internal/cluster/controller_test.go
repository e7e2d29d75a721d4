package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	hostsv1alpha2 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestReconcile(t *testing.T) {
	const host, port = "10.0.0.9", 6443
	endpoint := clusterv1.APIEndpoint{Host: host, Port: port}
	var build object.Builder
	in := func(zone string, roles ...hostsv1.Role) *hostsv1.Host {
		h := &hostsv1.Host{ObjectMeta: build.Meta("Host", "host-"+zone)}
		h.Labels[hostsv1.ZoneLabel] = zone
		h.Spec.Roles = roles
		return h
	}
	tests := []struct {
		reason  string
		cluster func(*clusterv1.Cluster)
		change  func(*hostsv1alpha2.HostCluster)
		hosts   []client.Object
		ready   bool
		at      clusterv1.APIEndpoint
		zones   []clusterv1.FailureDomain
		because string
	}{
		{reason: "the endpoint is the user's", change: func(c *hostsv1alpha2.HostCluster) { c.Spec.ControlPlaneEndpoint = endpoint }, ready: true, at: endpoint},
		{reason: "a Cluster of a class has its own endpoint", cluster: func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = endpoint }, ready: true, at: endpoint},
		{reason: "without an endpoint, nothing is ready", because: "WaitingForEndpoint"},
		{reason: "half an endpoint is none", change: func(c *hostsv1alpha2.HostCluster) { c.Spec.ControlPlaneEndpoint.Host = host }, at: clusterv1.APIEndpoint{Host: host}, because: "WaitingForEndpoint"},
		{reason: "a paused Cluster is left alone", cluster: func(c *clusterv1.Cluster) {
			c.Spec.Paused = ptr.To(true)
			c.Spec.ControlPlaneEndpoint = endpoint
		}},
		{reason: "a HostCluster that something else manages is left alone", cluster: func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = endpoint },
			change: func(c *hostsv1alpha2.HostCluster) {
				c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: ""}
			}},
		{reason: "a HostCluster that no Cluster owns is left alone", change: func(c *hostsv1alpha2.HostCluster) { c.OwnerReferences = nil }},
		{reason: "zones are those of Hosts; control planes go where a Host is for them", change: func(c *hostsv1alpha2.HostCluster) { c.Spec.ControlPlaneEndpoint = endpoint },
			hosts: []client.Object{in("a"), in("b", hostsv1.RoleWorker), in("")}, ready: true, at: endpoint,
			zones: []clusterv1.FailureDomain{{Name: "a", ControlPlane: ptr.To(true)}, {Name: "b", ControlPlane: ptr.To(false)}}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			cluster := build.Cluster()
			obj := object.ControlledBy(&hostsv1alpha2.HostCluster{ObjectMeta: build.Meta("HostCluster", "c")}, cluster)
			if tc.cluster != nil {
				tc.cluster(cluster)
			}
			if tc.change != nil {
				tc.change(obj)
			}
			there := fakeapi.New(t, fakeapi.Options{
				Kinds: []func(*runtime.Scheme) error{hostsv1.AddToScheme, hostsv1alpha2.AddToScheme}, Objects: append(tc.hosts, cluster, obj),
			})
			c := &Controller{there.ForController()}
			key := client.ObjectKeyFromObject(obj)
			if _, err := c.Declared().Runner(c.Clients).Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			testenv.Must(t, there.Get(t.Context(), key, obj))
			because := ""
			if ready := condition.Get(obj, clusterv1.ReadyV1Beta1Condition); ready != nil {
				because = ready.Reason
			}
			if obj.Status.Initialization.Provisioned != tc.ready || because != tc.because {
				t.Errorf("ready is %t because of %q", obj.Status.Initialization.Provisioned, because)
			}
			if diff := cmp.Diff(tc.at, obj.Spec.ControlPlaneEndpoint); diff != "" {
				t.Errorf("endpoint (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.zones, obj.Status.FailureDomains); diff != "" {
				t.Errorf("failure domains (-want +got):\n%s", diff)
			}
		})
	}
}
