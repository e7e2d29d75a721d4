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

// The groups that kubeadm grants rights to. Names of groups and of the objects below are kubeadm's.
const (
	// nodesGroup are all kubelets.
	nodesGroup = "system:nodes"
	// joinersGroup are machines that join by a bootstrap token.
	joinersGroup = "system:bootstrappers:kubeadm:default-node-token"
	// adminsGroup is who a kubeconfig of kubeadm from v1.29 on is for.
	adminsGroup = "kubeadm:cluster-admins"
)

// joinerRBAC lets machines that join look at their Node: kubeadm checks that there is none of that name.
func joinerRBAC() []client.Object {
	const name = "kubeadm:get-nodes"
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
		},
		clusterBinding(name, name, joinersGroup),
	}
}

// kubeletRBAC lets machines that join read the kubelet's configuration.
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

// adminRBAC gives the kubeconfigs that kubeadm writes from v1.29 on their rights; before, they were members of
// system:masters.
func adminRBAC(version semver.Version) []client.Object {
	if version.Major == 1 && version.Minor < 29 {
		return nil
	}
	return []client.Object{clusterBinding("kubeadm:cluster-admins", "cluster-admin", adminsGroup)}
}

func clusterBinding(name, role, group string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   groups(group),
	}
}

func groups(names ...string) []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, name := range names {
		all = append(all, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
	}
	return all
}

// ensure creates what does not exist. What exists may have been changed by the cluster's administrators and is left
// alone. Each object is looked for once over a connection.
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
			return fmt.Errorf("ensuring that %s exists: %w", name, err)
		}
		c.verified.set(name, "")
	}
	return nil
}
