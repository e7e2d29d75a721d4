package workload

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The groups that kubeadm grants permissions to. The names of these groups and of the objects below are those of kubeadm.
const (
	// nodesGroup is the group of all kubelets.
	nodesGroup = "system:nodes"
	// joinersGroup is the group of machines that join with a bootstrap token.
	joinersGroup = "system:bootstrappers:kubeadm:default-node-token"
	// adminsGroup is the group of the admin kubeconfig of kubeadm from v1.29 on.
	adminsGroup = "kubeadm:cluster-admins"
	// kubeletClient is the user as which API servers connect to kubelets.
	kubeletClient = "kube-apiserver-kubelet-client"
)

// joinerRBAC permits joining machines to read Nodes: kubeadm checks that theirs does not exist.
func joinerRBAC() []client.Object {
	const name = "kubeadm:get-nodes"
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
		},
		clusterBinding(name, name, groups(joinersGroup)...),
	}
}

// kubeletRBAC permits joining machines to read the kubelet configuration.
func kubeletRBAC(version semver.Version) []client.Object {
	config := kubeletConfigName(version)
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kubeadm:" + config}
	return []client.Object{
		&rbacv1.Role{
			ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{config}, Verbs: []string{"get"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   groups(nodesGroup, joinersGroup),
		},
	}
}

// adminRBAC grants permissions to the admin kubeconfig of kubeadm from v1.29 on. Before, it was in the group system:masters.
func adminRBAC(version semver.Version) []client.Object {
	if version.Major == 1 && version.Minor < 29 {
		return nil
	}
	return []client.Object{clusterBinding("kubeadm:cluster-admins", "cluster-admin", groups(adminsGroup)...)}
}

// kubeletClientRBAC permits API servers of v1.36 and later to connect to kubelets: for logs, exec and forwarded ports. Before, their
// certificates were in adminsGroup. kubeadm creates this only in new clusters and during "kubeadm upgrade".
func kubeletClientRBAC(version semver.Version) []client.Object {
	if version.Major == 1 && version.Minor < 36 {
		return nil
	}
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: kubeletClient}
	return []client.Object{clusterBinding("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", user)}
}

func clusterBinding(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects,
	}
}

func groups(names ...string) []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, name := range names {
		all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
	}
	return all
}

// ensure creates objects that do not exist. Existing ones are not changed. Each object is read once per connection.
func (c *Cluster) ensure(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		key := client.ObjectKeyFromObject(o)
		name := fmt.Sprintf("%T %s", o, key)
		if c.verified.is(name, "") {
			continue
		}
		err := c.Client.Get(ctx, key, o.DeepCopyObject().(client.Object))
		if apierrors.IsNotFound(err) {
			err = c.Client.Create(ctx, o)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s unless it exists: %w", name, err)
		}
		c.verified.set(name, "")
	}
	return nil
}
