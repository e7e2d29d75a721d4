package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
)

func TestReconcile(t *testing.T) {
	const host, port = "10.0.0.9", 6443
	endpoint := clusterv1.APIEndpoint{Host: host, Port: port}
	owner := func() *clusterv1.Cluster {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "1"}}
	}
	in := func(zone string, roles ...hostsv1.Role) *hostsv1.Host {
		h := &hostsv1.Host{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "host-" + zone, Labels: map[string]string{hostsv1.ZoneLabel: zone}}}
		h.Spec.Roles = roles
		return h
	}
	tests := []struct {
		reason  string
		cluster func(*clusterv1.Cluster)
		change  func(*hostsv1.HostCluster)
		hosts   []client.Object
		ready   bool
		at      clusterv1.APIEndpoint
		zones   clusterv1.FailureDomains
		because string
	}{
		{reason: "the endpoint is the user's", change: func(c *hostsv1.HostCluster) { c.Spec.ControlPlaneEndpoint = endpoint }, ready: true, at: endpoint},
		{reason: "a Cluster of a class has its own endpoint", cluster: func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = endpoint }, ready: true, at: endpoint},
		{reason: "without an endpoint, nothing is ready", because: "WaitingForEndpoint"},
		{reason: "half an endpoint is none", change: func(c *hostsv1.HostCluster) { c.Spec.ControlPlaneEndpoint.Host = host }, at: clusterv1.APIEndpoint{Host: host}, because: "WaitingForEndpoint"},
		{reason: "a paused Cluster is left alone", cluster: func(c *clusterv1.Cluster) { c.Spec.Paused = true; c.Spec.ControlPlaneEndpoint = endpoint }},
		{reason: "a HostCluster that something else manages is left alone", cluster: func(c *clusterv1.Cluster) { c.Spec.ControlPlaneEndpoint = endpoint },
			change: func(c *hostsv1.HostCluster) { c.Annotations = map[string]string{clusterv1.ManagedByAnnotation: ""} }},
		{reason: "a HostCluster that no Cluster owns is left alone", change: func(c *hostsv1.HostCluster) { c.OwnerReferences = nil }},
		{reason: "zones are those of Hosts; control planes go where a Host is for them", change: func(c *hostsv1.HostCluster) { c.Spec.ControlPlaneEndpoint = endpoint },
			hosts: []client.Object{in("a"), in("b", hostsv1.RoleWorker), in("")}, ready: true, at: endpoint,
			zones: clusterv1.FailureDomains{"a": {ControlPlane: true}, "b": {}}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			cluster := owner()
			obj := &hostsv1.HostCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
				OwnerReferences: []metav1.OwnerReference{ownership.Reference(cluster, clusterv1.GroupVersion.WithKind("Cluster"), true)}}}
			if tc.cluster != nil {
				tc.cluster(cluster)
			}
			if tc.change != nil {
				tc.change(obj)
			}
			scheme := runtime.NewScheme()
			_, _ = clusterv1.AddToScheme(scheme), hostsv1.AddToScheme(scheme) // reading fails without them
			there := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.hosts, cluster, obj)...).WithStatusSubresource(obj).Build()
			c := &Controller{step.Outside{Client: there, Live: there, Recorder: record.NewFakeRecorder(10), Clock: testclock.NewFakeClock(time.Unix(0, 0))}}
			key := client.ObjectKeyFromObject(obj)
			if _, err := c.Declared().Runner(c.Outside).Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if err := there.Get(t.Context(), key, obj); err != nil {
				t.Fatal(err)
			}
			because := ""
			if ready := condition.Get(obj, clusterv1.ReadyCondition); ready != nil {
				because = ready.Reason
			}
			if obj.Status.Ready != tc.ready || because != tc.because {
				t.Errorf("ready is %t because of %q", obj.Status.Ready, because)
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
