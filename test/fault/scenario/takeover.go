package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/recordedcluster"
)

// The release that has recorded the Clusters, and the version of its objects.
const (
	recordedRelease = "v1.7.0"
	recordedVersion = "v1beta1"
)

// takeovers returns the scenarios of Clusters that Cluster API v1.7.0 has left in the middle of something. They are paused until the
// change, so that everything that the managers write to them is part of it. The managers must finish what was begun: a Machine that is
// right stays.
func takeovers() []Scenario {
	take := func(name, state string, limits Limits, done ...Condition) Scenario {
		return Scenario{
			Name: "takeover-" + name, Recorded: true, Prepare: storeClass(state), Arrange: storeCluster(state), Change: []Change{Unpause},
			Done: done, Limits: limits,
		}
	}
	version := func(version string) Condition {
		return func(now history.State) error { return haveVersion(now, version) }
	}
	const first, second = "v1.29.2", "v1.30.0"
	deleting := take("deleting", "8-deleting", Limits{MaxControlPlanes: 1}, Absent)
	deleting.Deletes = true
	return []Scenario{
		// All Machines exist, those of the workers without bootstrap data.
		take("creating", "1-creating", Limits{MaxControlPlanes: 3, MaxWorkers: 2, MinControlPlanes: 3}, version(first), Ready(deployed(3, 2))),
		// One of three control plane Machines is new, and one was just deleted.
		take("upgrading", "3-upgrading", Limits{
			MaxControlPlanes: 4, MaxWorkers: 3, MinControlPlanes: 3, MinWorkers: 2, NewControlPlanes: 2, NewWorkers: 2,
		}, version(second), Ready(deployed(3, 2))),
		// Of three control plane Machines, one was deleted; another one has to be.
		take("scaling", "5-scaling", Limits{
			MaxControlPlanes: 2, MaxWorkers: 4, MinControlPlanes: 1, MinWorkers: 4,
		}, version(second), Ready(deployed(1, 4))),
		// The workers are gone, the control plane is not being deleted yet.
		deleting,
	}
}

// CheckRecords returns an error, which is recorded.ErrAbsent if there is no reference data, unless all recorded Clusters can be read.
func CheckRecords(ctx context.Context, root string) error {
	_, err := recorded.Read(ctx, root, recordedRelease, recordedVersion)
	return err
}

// storeClass replaces the class of the namespace by that of a recorded state.
func storeClass(state string) Change {
	return func(ctx context.Context, t Target) error {
		objects, err := Class()
		if err != nil {
			return err
		}
		for _, o := range objects {
			o.SetNamespace(t.Namespace)
			if err := client.IgnoreNotFound(t.Client.Delete(ctx, o)); err != nil {
				return fmt.Errorf("deleting %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
		if err := t.Until(ctx, absent(objects)); err != nil {
			return err
		}
		c, err := copied(ctx, t, state)
		if err != nil {
			return err
		}
		return store(ctx, t, c.Class...)
	}
}

// storeCluster stores a recorded Cluster, paused, whose machines run: they would have run all the time. So only the provider of in-memory
// machines begins with it, while annotations pause all other objects. Then the Cluster is paused, and these are stored as they were
// recorded. The Cluster exists before what belongs to it, and is paused before that is no longer.
func storeCluster(state string) Change {
	return func(ctx context.Context, t Target) error {
		c, err := copied(ctx, t, state)
		if err != nil {
			return err
		}
		var infrastructure, others []*unstructured.Unstructured
		for _, o := range c.Others {
			if o.GetAPIVersion() == infrastructureAPI {
				infrastructure = append(infrastructure, o)
			} else {
				others = append(others, o)
			}
		}
		if err := store(ctx, t, annotated(c.Cluster)...); err != nil {
			return err
		}
		if err := store(ctx, t, append(infrastructure, annotated(others...)...)...); err != nil {
			return err
		}
		for _, secret := range c.Secrets {
			if err := t.Client.Create(ctx, secret); err != nil {
				return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
			}
		}
		if err := awaitMachines(ctx, c); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(c.Cluster.Object, true, "spec", "paused"); err != nil {
			return err
		}
		if err := store(ctx, t, c.Cluster); err != nil {
			return err
		}
		return store(ctx, t, others...)
	}
}

// annotated returns copies of objects that are paused by an annotation.
func annotated(objects ...*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		o = o.DeepCopy()
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[clusterv1.PausedAnnotation] = ""
		o.SetAnnotations(annotations)
		out = append(out, o)
	}
	return out
}

// startTimeout is many times what simulated machines take to start on an idle machine.
const startTimeout = time.Minute

// awaitMachines returns when all machines that were running run again.
func awaitMachines(ctx context.Context, c *recordedcluster.Copy) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = started(ctx, c)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for machines: %w", errors.Join(err, last))
	}
	return nil
}

// started returns an error unless each Machine with a Node has one in the workload cluster, and with it etcd and an API server if it
// belongs to the control plane.
func started(ctx context.Context, c *recordedcluster.Copy) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig())
	if err != nil {
		return err
	}
	workload, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	for _, o := range c.Others {
		name, found, _ := unstructured.NestedString(o.Object, "status", "nodeRef", "name")
		if o.GetKind() != "Machine" || !found {
			continue
		}
		want := []*unstructured.Unstructured{object("v1", "Node", "", name)}
		if _, controlPlane := o.GetLabels()[clusterv1.MachineControlPlaneLabel]; controlPlane {
			for _, program := range []string{"etcd-", "kube-apiserver-"} {
				want = append(want, object("v1", "Pod", metav1.NamespaceSystem, program+name))
			}
		}
		for _, one := range want {
			if err := workload.Get(ctx, client.ObjectKeyFromObject(one), one); err != nil {
				return err
			}
		}
	}
	return nil
}

// copied returns a recorded state for the namespace of a run.
func copied(ctx context.Context, t Target, state string) (*recordedcluster.Copy, error) {
	states, err := recorded.Read(ctx, t.Root, recordedRelease, recordedVersion)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(states, func(s recorded.State) bool { return s.Name == state })
	if i < 0 {
		return nil, fmt.Errorf("%s has not recorded state %s", recordedRelease, state)
	}
	if name := states[i].Cluster.Name; name != ClusterName {
		return nil, fmt.Errorf("the recorded Cluster is %s, want %s", name, ClusterName)
	}
	port, err := freePort(ctx, t.LastPort, t.Namespace)
	if err != nil {
		return nil, err
	}
	return recordedcluster.NewCopy(states[i], t.Namespace, port, time.Now())
}

// store stores objects, and returns when watches have seen them.
func store(ctx context.Context, t Target, objects ...*unstructured.Unstructured) error {
	storage, err := recordedcluster.Open(t.DataDir)
	if err != nil {
		return err
	}
	defer func() { _ = storage.Close() }()
	if err := storage.Put(ctx, objects...); err != nil {
		return fmt.Errorf("storing objects: %w", err)
	}
	return t.Until(ctx, present(objects))
}

// present is true when all objects exist.
func present(objects []*unstructured.Unstructured) Condition {
	return func(now history.State) error {
		for _, o := range objects {
			if found := now[history.Key{Kind: o.GetKind(), Name: o.GetName()}]; found == nil || found.GetUID() != o.GetUID() {
				return fmt.Errorf("%s %s does not exist yet", o.GetKind(), o.GetName())
			}
		}
		return nil
	}
}

// absent is true when none of the objects exists.
func absent(objects []*unstructured.Unstructured) Condition {
	return func(now history.State) error {
		for _, o := range objects {
			if now[history.Key{Kind: o.GetKind(), Name: o.GetName()}] != nil {
				return fmt.Errorf("%s %s still exists", o.GetKind(), o.GetName())
			}
		}
		return nil
	}
}

// Unpause ends the pause of the Cluster.
func Unpause(ctx context.Context, t Target) error {
	c := object(clusterAPI, "Cluster", t.Namespace, ClusterName)
	c.Object["spec"] = map[string]any{"paused": nil}
	return client.IgnoreNotFound(t.Client.Patch(ctx, c, client.Merge)) // It may have succeeded, and the Cluster be deleted.
}
