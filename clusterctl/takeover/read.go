package takeover

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// page is how many objects a request lists.
const page = 500

// definitions are those whose objects every version of Cluster API has.
func definitions() []string {
	return []string{
		"clusters.cluster.x-k8s.io", "clusterclasses.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "machinesets.cluster.x-k8s.io",
		"machinedeployments.cluster.x-k8s.io", "machinepools.cluster.x-k8s.io", "machinehealthchecks.cluster.x-k8s.io",
		"clusterresourcesets.addons.cluster.x-k8s.io", "clusterresourcesetbindings.addons.cluster.x-k8s.io",
		"kubeadmconfigs.bootstrap.cluster.x-k8s.io", "kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io",
		"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "kubeadmcontrolplanetemplates.controlplane.cluster.x-k8s.io",
	}
}

// Read reads the objects of all namespaces, in the versions in which they are stored: the webhook that converts them may be down. progress
// is called with the number of objects after each request.
func Read(ctx context.Context, c client.Reader, progress func(int)) (Objects, error) {
	o, versions := Objects{Stored: map[string][]string{}}, map[string]string{}
	for _, name := range definitions() {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := get(ctx, c, name, crd); client.IgnoreNotFound(err) != nil {
			return o, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		} else if err != nil {
			continue // A provider that is not installed.
		}
		o.Stored[name] = crd.Status.StoredVersions
		for _, v := range crd.Spec.Versions {
			o.ServesV1Beta2 = o.ServesV1Beta2 || v.Name == clusterv1.GroupVersion.Version && v.Served
			if v.Storage {
				versions[crd.Spec.Names.Kind] = v.Name
			}
		}
	}
	for _, kind := range []string{clusterv1.ClusterKind, machineDeploymentKind, machineSetKind, clusterv1.MachineKind} {
		stored := schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group, Version: versions[kind], Kind: kind}
		if err := o.list(ctx, c, stored, progress); err != nil {
			return o, fmt.Errorf("listing %ss: %w", kind, err)
		}
	}
	return o, o.readManagers(ctx, c)
}

// get reads a definition with a client whose scheme may not have them.
func get(ctx context.Context, c client.Reader, name string, crd *apiextensionsv1.CustomResourceDefinition) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := c.Get(ctx, client.ObjectKey{Name: name}, u); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd)
}

// list adds the metadata of all objects of a kind.
func (o *Objects) list(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, progress func(int)) error {
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			return err
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
		}
		o.Metadata = append(o.Metadata, list.Items...)
		if progress != nil {
			progress(len(o.Metadata))
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}
