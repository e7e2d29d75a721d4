package scenario

import (
	"context"
	"errors"
	"hash/fnv"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// managed returns the scenarios of Clusters whose infrastructure is managed by another system, ManageInfrastructure.
func managed() []Scenario {
	s := deployed(1, 1)
	all := []Scenario{
		creation("managed-create", s),
		rollout("managed-upgrade", s, Upgrade, 1, 1, Upgraded),
		deletion("managed-delete", s),
	}
	for i := range all {
		all[i].Prepare, all[i].Provider = UseManagedInfrastructure, ManageInfrastructure
	}
	return all
}

// UseManagedInfrastructure changes the class: the infrastructure of its Clusters is annotated as managed by another system.
func UseManagedInfrastructure(ctx context.Context, t Target) error {
	return useInfrastructure(ctx, t, "managed", map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{clusterv1.ManagedByAnnotation: "another system"}}, "spec": map[string]any{},
	})
}

// useInfrastructure changes the class: its Clusters have infrastructure of a new template.
func useInfrastructure(ctx context.Context, t Target, name string, template map[string]any) error {
	o := object(infrastructureAPI, "InMemoryClusterTemplate", t.Namespace, name)
	o.Object["spec"] = map[string]any{"template": template}
	if err := t.Client.Create(ctx, o); err != nil {
		return err
	}
	return editClass(ctx, t, func(class map[string]any) error {
		return unstructured.SetNestedField(class, name, "spec", "infrastructure", "ref", "name")
	})
}

// ManageInfrastructure does what the contract asks of a system that manages infrastructure: it sets the endpoint and reports that it
// is ready. Each call makes at most one step.
func ManageInfrastructure(ctx context.Context, t Target, now history.State) error {
	all := now.Of("InMemoryCluster")
	if len(all) != 1 || all[0].GetAnnotations()[clusterv1.ManagedByAnnotation] == "" || all[0].GetDeletionTimestamp() != nil {
		return nil
	}
	change := object(infrastructureAPI, all[0].GetKind(), t.Namespace, all[0].GetName())
	if host, _, _ := unstructured.NestedString(all[0].Object, "spec", "controlPlaneEndpoint", "host"); host == "" {
		port, err := freePort(ctx, t.LastPort, string(all[0].GetUID()))
		if err != nil {
			return err
		}
		change.Object["spec"] = map[string]any{"controlPlaneEndpoint": map[string]any{"host": loopback, "port": int64(port)}}
		return t.Client.Patch(ctx, change, client.Merge)
	}
	if ready, _, _ := unstructured.NestedBool(all[0].Object, "status", "ready"); ready {
		return nil
	}
	change.Object["status"] = map[string]any{"ready": true}
	return t.Client.Status().Patch(ctx, change, client.Merge)
}

// loopback is the host of the API servers of workload clusters.
const loopback = "127.0.0.1"

// freePort returns a port that nothing listens on, and that depends on a unique text. It is one of the last ports that the in-memory
// provider may use, which allocates the first ones.
func freePort(ctx context.Context, last int, unique string) (int, error) {
	const ports = 300
	h := fnv.New32a()
	_, _ = h.Write([]byte(unique)) // It never fails.
	start := int(h.Sum32() % ports)
	for i := range ports {
		port := last - (start+i)%ports
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no port is free")
}
