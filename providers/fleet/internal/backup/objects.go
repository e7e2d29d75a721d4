package backup

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxTemplates is how many templates of bootstrap data are read, each with one request.
const maxTemplates = 50

// objects returns the objects that describe a cluster, as YAML: the Cluster, its KubeadmControlPlane, the kinds of its workers, and its
// Machines. Those of infrastructure providers are left out, since the provider may not read them; docs/adr/0063 has the reasons. version is
// that of Kubernetes on the Machine with a Node.
func (c *Controller) objects(ctx context.Context, cluster *clusterv1.Cluster, node string) (text []byte, version string, err error) {
	all := []client.Object{cluster.DeepCopy()}
	if ref := cluster.Spec.ControlPlaneRef; ref.Kind == "KubeadmControlPlane" && ref.APIGroup == controlplanev1.GroupVersion.Group {
		kcp := &controlplanev1.KubeadmControlPlane{}
		kcp.Namespace, kcp.Name = cluster.Namespace, ref.Name
		if err := c.addTo(ctx, &all, kcp); err != nil {
			return nil, "", err
		}
	}
	templates := map[string]bool{}
	for _, list := range []client.ObjectList{
		&clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachinePoolList{}, &clusterv1.MachineHealthCheckList{},
		&clusterv1.MachineList{},
	} {
		err := c.Live.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})
		if apimeta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("listing %T: %w", list, err)
		}
		err = apimeta.EachListItem(list, func(item runtime.Object) error {
			obj, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			all = append(all, obj)
			if m, ok := obj.(*clusterv1.Machine); ok && m.Status.NodeRef.Name == node {
				version = m.Spec.Version
			}
			if name := templateOf(obj); name != "" {
				templates[name] = true
			}
			return nil
		})
		if err != nil {
			return nil, "", err
		}
	}
	if err := c.addTemplates(ctx, &all, cluster.Namespace, templates); err != nil {
		return nil, "", err
	}
	text, err = c.documents(all)
	return text, version, err
}

// templateOf returns the name of the KubeadmConfigTemplate of a MachineDeployment.
func templateOf(obj client.Object) string {
	md, ok := obj.(*clusterv1.MachineDeployment)
	if !ok {
		return ""
	}
	ref := md.Spec.Template.Spec.Bootstrap.ConfigRef
	if ref.Kind != "KubeadmConfigTemplate" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return ""
	}
	return ref.Name
}

func (c *Controller) addTemplates(ctx context.Context, all *[]client.Object, namespace string, names map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(names))[:min(len(names), maxTemplates)] {
		template := &bootstrapv1.KubeadmConfigTemplate{}
		template.Namespace, template.Name = namespace, name
		if err := c.addTo(ctx, all, template); err != nil {
			return err
		}
	}
	return nil
}

// addTo reads an object, and adds it if it exists.
func (c *Controller) addTo(ctx context.Context, all *[]client.Object, obj client.Object) error {
	key := client.ObjectKeyFromObject(obj)
	err := c.Live.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", obj, key.Name, err)
	}
	*all = append(*all, obj)
	return nil
}

// documents returns objects as documents of a YAML file.
func (c *Controller) documents(all []client.Object) ([]byte, error) {
	var text []byte
	for _, obj := range all {
		kind, err := apiutil.GVKForObject(obj, c.Client.Scheme())
		if err != nil {
			return nil, err
		}
		obj.GetObjectKind().SetGroupVersionKind(kind)
		one, err := document(obj)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", kind.Kind, obj.GetName(), err)
		}
		text = append(text, one...)
	}
	return text, nil
}
