package journey

import (
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// managed is the annotation of infrastructure that another system manages, in YAML.
const managed = clusterv1.ManagedByAnnotation + ": terraform"

// managedServer returns the URL of an API server at a port.
func managedServer(port int) string {
	return "https://" + net.JoinHostPort(managedHost, strconv.Itoa(port))
}

// freePort returns a port that nothing listens on, in the range of the in-memory provider's API servers. No other test gets it.
func (w *World) freePort() int {
	w.t.Helper()
	return w.freePortBelow(w.t, 24000)
}

// provision does what the other system does for infrastructure: it sets the endpoint, unless port is 0, and the status.
func (w *World) provision(name string, port int) {
	w.t.Helper()
	ctx, key := w.t.Context(), types.NamespacedName{Namespace: w.Namespace, Name: name}
	if port != 0 {
		o := inMemoryCluster(key)
		o.Object["spec"] = map[string]any{"controlPlaneEndpoint": map[string]any{"host": managedHost, "port": port}}
		if err := w.Client.Patch(ctx, o, client.Merge); err != nil {
			w.t.Fatalf("setting the endpoint: %v", err)
		}
	}
	o := inMemoryCluster(key)
	o.Object["status"] = map[string]any{"ready": true, "failureDomains": map[string]any{"outside": map[string]any{"controlPlane": true}}}
	if err := w.Client.Status().Patch(ctx, o, client.Merge); err != nil {
		w.t.Fatalf("setting the status: %v", err)
	}
}

// untouched is true while the InMemoryCluster has what the other system has set, and nothing of its provider.
func (c *Subject) untouched(port int) Condition {
	return func(*Snapshot) error {
		o := inMemoryCluster(types.NamespacedName{Namespace: c.Namespace, Name: c.Snapshot().Cluster.Spec.InfrastructureRef.Name})
		if err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		spec := map[string]any{}
		if port != 0 {
			spec["controlPlaneEndpoint"] = map[string]any{"host": managedHost, "port": int64(port)}
		}
		have := map[string]any{"spec": o.Object["spec"], "status": o.Object["status"], "finalizers": o.GetFinalizers(), "managed": o.GetAnnotations()[clusterv1.ManagedByAnnotation]}
		want := map[string]any{
			"spec": spec, "finalizers": []string(nil), "managed": "terraform",
			"status": map[string]any{"ready": true, "failureDomains": map[string]any{"outside": map[string]any{"controlPlane": true}}},
		}
		if diff := cmp.Diff(want, have); diff != "" {
			return fmt.Errorf("externally managed InMemoryCluster (-want +got):\n%s", diff)
		}
		return nil
	}
}

// inDomain is true when every control plane Machine is in a failure domain.
func inDomain(name string) Condition {
	return func(p *Snapshot) error {
		for _, m := range p.ControlPlane() {
			if m.Spec.FailureDomain == nil || *m.Spec.FailureDomain != name {
				return fmt.Errorf("Machine %s is in failure domain %v, want %s", m.Name, value(m.Spec.FailureDomain), name)
			}
		}
		return nil
	}
}

// TestExternallyManagedInfrastructure creates Clusters whose infrastructure is managed by another system. The system sets the endpoint,
// or the user has set it on the Cluster.
func TestExternallyManagedInfrastructure(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		byUser bool
	}{{"the other system sets the endpoint", false}, {"the user sets the endpoint", true}} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			w := shared.World(t)
			port := w.freePort()
			cluster := Plain{ControlPlanes: 1, Workers: 1, Annotations: managed}
			set := port
			if tc.byUser {
				cluster.Endpoint, set = fmt.Sprintf("host: %s, port: %d", managedHost, port), 0
			}
			c := w.Plain(cluster.String())
			c.Eventually("the Cluster waits for the infrastructure", func(p *Snapshot) error {
				if len(p.Deployments.Items) == 0 || p.Cluster.Status.InfrastructureReady || p.Cluster.Status.ObservedGeneration == 0 {
					return fmt.Errorf("status %+v", p.Cluster.Status)
				}
				return nil
			}, c.Explains("ExternallyManaged InMemoryCluster/c"))
			w.provision("c", set)
			c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), inDomain("outside"), c.WorkloadMatches)
			if have := c.Snapshot().Cluster.Spec.ControlPlaneEndpoint; have.Host != managedHost || have.Port != int32(port) {
				t.Errorf("the Cluster has endpoint %s, want port %d", have.String(), port)
			}
			c.Eventually("the provider ignores its object", c.untouched(set))
			c.Gone()
		})
	}
}

// TestExternallyManagedInfrastructureOfAClass does the same with a class: the topology controller keeps the endpoint, also when it
// changes the Cluster.
func TestExternallyManagedInfrastructureOfAClass(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	objects, err := readObjects(w.Tools.ProjectTemplate().Class)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == "InMemoryClusterTemplate" {
			annotations := map[string]string{clusterv1.ManagedByAnnotation: "terraform"}
			if err := unstructured.SetNestedStringMap(o.Object, annotations, "spec", "template", "metadata", "annotations"); err != nil {
				t.Fatal(err)
			}
		}
		w.Applied(o)
	}
	c := w.Subject(NewCluster("c", "in-memory").Workers(1).Build())
	c.Eventually("the topology controller creates the objects", func(p *Snapshot) error {
		if p.Cluster.Spec.InfrastructureRef == nil || len(p.ControlPlanes.Items) == 0 {
			return fmt.Errorf("the Cluster has no references yet")
		}
		return nil
	}, c.Explains("ExternallyManaged InMemoryCluster", "terraform"))
	port := w.freePort()
	w.provision(c.Snapshot().Cluster.Spec.InfrastructureRef.Name, port)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), inDomain("outside"), c.WorkloadMatches, c.untouched(port))
	c.Change(func(cluster *clusterv1.Cluster) {
		SetWorkers(2)(cluster)
		metav1.SetMetaDataLabel(&cluster.ObjectMeta, "changed", "yes")
	})
	c.Eventually("the Cluster is changed", Ready, ControlPlanes(1), Workers(2), c.WorkloadMatches, c.untouched(port))
	c.Change(SetVersion(newer))
	c.Eventually("the Cluster is upgraded", Ready, ControlPlanes(1), Workers(2), Version(newer), c.WorkloadMatches, c.untouched(port))
	c.Gone()
}
