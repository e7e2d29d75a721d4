package cloud

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Content is the objects of a workload cluster, from the database of an etcd.
type Content struct {
	// Objects are the objects.
	Objects []store.Imported
	// Revision is the revision of the database.
	Revision uint64
}

// Replace replaces the objects of the cluster, as when a control plane starts with another etcd: an empty one, if content is nil. Machines
// remain. Nodes and Pods are not ready, because no kubelet reports: see ConnectKubelets. Missing default namespaces are created, with UIDs
// that derive from the seed. An empty etcd does not begin with revision 1 as a real one does, so that revisions never go backwards.
func (g *Group) Replace(content *Content, seed string) error {
	err := g.Exclusively(func(e store.Exclusive) error {
		if content == nil {
			return e.Replace(nil, e.Revision()+1)
		}
		if err := e.Replace(content.Objects, content.Revision); err != nil {
			return err
		}
		for _, o := range append(e.List(store.Nodes()), e.List(store.Pods())...) {
			if o.Key.Resource == store.Pods() && !bound(o) {
				continue
			}
			if err := e.Modify(o, g.power.MarkUnreachable); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.addNamespaces(seed)
}

// ConnectKubelets makes the Nodes and Pods of all running machines ready whose kubelets could not report, because there was no API server.
func (g *Group) ConnectKubelets() error {
	return g.Exclusively(func(e store.Exclusive) error {
		if !g.faultsSet {
			return nil // Which machines have power is unknown until SetFaults, which does it.
		}
		for _, name := range unreachableNodes(e) {
			if g.power.Dead(name) {
				continue
			}
			if err := g.powerOn(e, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// hasKubelet reports whether a machine exists that could run the kubelet of a Node.
func hasKubelet(e store.Exclusive, node string) bool {
	return e.Get(store.Key{Resource: machines.Resource(), Name: node}) != nil
}

// bound reports whether a Pod is bound to a Node.
func bound(pod *store.Object) bool {
	node, _, _ := unstructured.NestedString(pod.Unstructured().Object, "spec", "nodeName")
	return node != ""
}
