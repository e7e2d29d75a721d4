package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
)

// identity identifies an object of a Cluster, at any API version.
type identity struct {
	kind schema.GroupKind
	name string
}

func identityOf(ref *clusterv1.ContractVersionedObjectReference) identity {
	return identity{ref.GroupKind(), ref.Name}
}

// identityOfVersioned is identityOf for a reference with a version.
func identityOfVersioned(ref *corev1.ObjectReference) identity {
	return identity{ref.GroupVersionKind().GroupKind(), ref.Name}
}

func identityOfObject(u *unstructured.Unstructured) identity {
	return identity{u.GroupVersionKind().GroupKind(), u.GetName()}
}

// TemplateUsers are the templates that the workers of a Cluster refer to.
type TemplateUsers struct {
	// sets are referenced by MachineSets, deployments by MachineDeployments, and terminating by either of them while it is
	// being deleted.
	sets, deployments, terminating map[identity]bool
}

// Use reports whether a template is referenced at all.
func (u TemplateUsers) Use(template *unstructured.Unstructured) bool {
	key := identityOfObject(template)
	return u.sets[key] || u.deployments[key] || u.terminating[key]
}

// ReadTemplateUsers lists the Cluster's MachineSets, and the MachineDeployments of its topology.
func ReadTemplateUsers(ctx context.Context, reader client.Reader, cluster *clusterv1.Cluster) (TemplateUsers, error) {
	users := TemplateUsers{sets: map[identity]bool{}, deployments: map[identity]bool{}, terminating: map[identity]bool{}}
	var deployments clusterv1.MachineDeploymentList
	if err := reader.List(ctx, &deployments, Labeled(cluster)...); err != nil {
		return TemplateUsers{}, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range deployments.Items {
		users.add(users.deployments, &deployments.Items[i], &deployments.Items[i].Spec.Template.Spec)
	}
	var sets clusterv1.MachineSetList
	if err := reader.List(ctx, &sets, ownership.InCluster(cluster.Namespace, cluster.Name)); err != nil {
		return TemplateUsers{}, fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range sets.Items {
		users.add(users.sets, &sets.Items[i], &sets.Items[i].Spec.Template.Spec)
	}
	return users, nil
}

// add adds the templates of a user to the given keys, or to terminating if the user is being deleted.
func (u TemplateUsers) add(keys map[identity]bool, user client.Object, machine *clusterv1.MachineSpec) {
	if !user.GetDeletionTimestamp().IsZero() {
		keys = u.terminating
	}
	for _, ref := range reference.OfMachine(machine) {
		keys[identityOf(ref)] = true
	}
}
