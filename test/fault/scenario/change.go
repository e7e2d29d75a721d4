package scenario

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

const (
	clusterAPI        = "cluster.x-k8s.io/v1beta1"
	infrastructureAPI = "infrastructure.cluster.x-k8s.io/v1alpha1"

	className     = "in-memory-quick-start"
	firstVersion  = "v1.29.2"
	secondVersion = "v1.30.5"
	rotatedSuffix = "-rotated"
)

//go:embed class.yaml
var class []byte

// Class returns the ClusterClass of all runs and its templates.
func Class() ([]*unstructured.Unstructured, error) { return parse("class.yaml", class) }

// parse returns the objects in a file.
func parse(name string, content []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, o)
	}
	return all, nil
}

// object returns an empty object for reading or deleting.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// InfrastructureOf returns an empty object for reading the infrastructure of a Machine.
func InfrastructureOf(machine string) *unstructured.Unstructured {
	return object(infrastructureAPI, "InMemoryMachine", "", machine)
}

// Create creates the Cluster.
func Create(s Size) Change {
	return func(ctx context.Context, t Target) error {
		return ignoreExists(t.Client.Create(ctx, cluster(t.Namespace, s)))
	}
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func cluster(namespace string, s Size) *unstructured.Unstructured {
	blocks := func(cidr string) any { return map[string]any{"cidrBlocks": []any{cidr}} }
	c := object(clusterAPI, "Cluster", namespace, ClusterName)
	c.Object["spec"] = map[string]any{
		"clusterNetwork": map[string]any{"services": blocks("10.128.0.0/12"), "pods": blocks("192.168.0.0/16"), "serviceDomain": "cluster.local"},
		"topology": map[string]any{
			"class": s.class(), "version": firstVersion,
			"controlPlane": s.controlPlane(),
			"workers": map[string]any{s.workers(): []any{
				map[string]any{"class": "default-worker", "name": s.topologyName(), "replicas": int64(s.Workers)},
			}},
		},
	}
	return c
}

// class returns the name of the class.
func (s Size) class() string {
	if s.Hosted {
		return hostedClass
	}
	return className
}

// controlPlane returns the control plane of the topology. One without Machines has no replicas.
func (s Size) controlPlane() map[string]any {
	if s.Hosted {
		return map[string]any{}
	}
	return map[string]any{"replicas": int64(s.ControlPlanes)}
}

// workers returns the field of the topology with the workers.
func (s Size) workers() string {
	if s.Pool {
		return "machinePools"
	}
	return "machineDeployments"
}

// topologyName returns the name of the workers in the topology.
func (s Size) topologyName() string {
	if s.Pool {
		return "mp-0"
	}
	return "md-0"
}

// Delete deletes the Cluster.
func Delete(ctx context.Context, t Target) error {
	return client.IgnoreNotFound(t.Client.Delete(ctx, object(clusterAPI, "Cluster", t.Namespace, ClusterName)))
}

// Resize changes the replicas of the Cluster.
func Resize(s Size) Change {
	return editCluster(func(topology map[string]any) error {
		all, _, err := unstructured.NestedSlice(topology, "workers", s.workers())
		if err != nil || len(all) != 1 {
			return fmt.Errorf("the Cluster must have one entry in workers.%s: %w", s.workers(), err)
		}
		return errors.Join(
			unstructured.SetNestedMap(topology, s.controlPlane(), "controlPlane"),
			unstructured.SetNestedField(all[0].(map[string]any), int64(s.Workers), "replicas"),
			unstructured.SetNestedSlice(topology, all, "workers", s.workers()),
		)
	})
}

// Upgrade changes the version of the Cluster to the second one.
func Upgrade(ctx context.Context, t Target) error { return upgradeTo(secondVersion)(ctx, t) }

func editCluster(edit func(topology map[string]any) error) Change {
	return editNamed(ClusterName, edit)
}

// editNamed changes the topology of a Cluster.
func editNamed(name string, edit func(topology map[string]any) error) Change {
	return func(ctx context.Context, t Target) error {
		c := object(clusterAPI, "Cluster", t.Namespace, name)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		topology, _, err := unstructured.NestedMap(c.Object, "spec", "topology")
		if err != nil {
			return err
		}
		if err := errors.Join(edit(topology), unstructured.SetNestedMap(c.Object, topology, "spec", "topology")); err != nil {
			return err
		}
		return t.Client.Update(ctx, c)
	}
}

// RotateWorkers changes the class to another infrastructure template for workers.
func RotateWorkers(ctx context.Context, t Target) error {
	return rotate(ctx, t, "in-memory-default-worker", func(class map[string]any, name string) error {
		deployments, _, err := unstructured.NestedSlice(class, "spec", "workers", "machineDeployments")
		if err != nil || len(deployments) != 1 {
			return fmt.Errorf("the class must have one MachineDeployment: %w", err)
		}
		return errors.Join(
			unstructured.SetNestedField(deployments[0].(map[string]any), name, "template", "infrastructure", "ref", "name"),
			unstructured.SetNestedSlice(class, deployments, "spec", "workers", "machineDeployments"),
		)
	})
}

// RotateControlPlane changes the class to another infrastructure template for the control plane.
func RotateControlPlane(ctx context.Context, t Target) error {
	return rotate(ctx, t, "in-memory-control-plane", func(class map[string]any, name string) error {
		return unstructured.SetNestedField(class, name, "spec", "controlPlane", "machineInfrastructure", "ref", "name")
	})
}

func rotate(ctx context.Context, t Target, template string, use func(class map[string]any, name string) error) error {
	next := object(infrastructureAPI, "InMemoryMachineTemplate", t.Namespace, template+rotatedSuffix)
	next.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{
		"behaviour": map[string]any{"vm": map[string]any{"provisioning": map[string]any{"startupDuration": "1ms"}}},
	}}}
	if err := ignoreExists(t.Client.Create(ctx, next)); err != nil {
		return err
	}
	return editClass(ctx, t, func(class map[string]any) error { return use(class, next.GetName()) })
}

func editClass(ctx context.Context, t Target, edit func(class map[string]any) error) error {
	c := object(clusterAPI, "ClusterClass", t.Namespace, className)
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
		return err
	}
	if err := edit(c.Object); err != nil {
		return err
	}
	return t.Client.Update(ctx, c)
}

// byAge returns the Machines of the control plane or the workers, the oldest first.
func byAge(now history.State, controlPlane bool) []*unstructured.Unstructured {
	machines, workers := Machines(now)
	if !controlPlane {
		machines = workers
	}
	slices.SortFunc(machines, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	return machines
}
