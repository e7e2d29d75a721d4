package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/coredns/corefile-migration/migration"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

const (
	// dnsName is the name of the Deployment, container and ConfigMap of CoreDNS.
	dnsName = "coredns"
	// dnsRole is the ClusterRole of CoreDNS.
	dnsRole = "system:coredns"
	// dnsVolume is the volume that CoreDNS reads its configuration from.
	dnsVolume = "config-volume"
	// corefileKey is the key of the configuration in the ConfigMap, corefileBackupKey that of the configuration before the last
	// migration.
	corefileKey       = "Corefile"
	corefileBackupKey = "Corefile-backup"
	// oldControlPlaneTaint is the taint of control plane Nodes up to v1.24.
	oldControlPlaneTaint = "node-role.kubernetes.io/master"
)

// maintainDNS updates CoreDNS to the image in the spec. Permissions and configuration of the new version are updated before its
// Pods start. A cluster without CoreDNS does not get one.
func (c *Cluster) maintainDNS(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	config := &kcp.Spec.KubeadmConfigSpec.ClusterConfiguration
	if !kubeadm.Defined(*config) {
		spec, err := snapshot.SpecOf(ctx, kcp)
		if err != nil || spec.ClusterConfiguration() == nil { // An empty one counts.
			return err
		}
	}
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: dnsName}
	if err := c.Client.Get(ctx, key, deployment); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading the Deployment of CoreDNS %s: %w", key, err)
	}
	container := containerOf(&deployment.Spec.Template.Spec, dnsName)
	if container == nil {
		return nil
	}
	change, err := dnsChangeOf(container.Image, config)
	if err != nil || change == nil {
		return err
	}
	if err := c.allowEndpointSlices(ctx, change.to); err != nil {
		return err
	}
	if err := c.recordDNS(ctx, config.DNS); err != nil {
		return err
	}
	if err := c.migrateCorefile(ctx, change); err != nil {
		return err
	}
	before := deployment.DeepCopy()
	container.Image = change.image
	mountCorefile(&deployment.Spec.Template.Spec)
	tolerateControlPlane(&deployment.Spec.Template.Spec)
	return c.patch(ctx, deployment, before)
}

// dnsChange is a change of CoreDNS' image.
type dnsChange struct {
	from, to semver.Version
	image    string
}

// dnsChangeOf returns the change from an image to that of a configuration, nil if there is none. What the configuration does
// not specify does not change.
func dnsChangeOf(from string, config *bootstrapv1.ClusterConfiguration) (*dnsChange, error) {
	was, err := parseImage(from)
	if err != nil {
		return nil, fmt.Errorf("parsing the image of CoreDNS: %w", err)
	}
	is := was
	if config.DNS.ImageMeta == (bootstrapv1.ImageMeta{}) && config.ImageRepository == "" && current(was.repository) == was.repository {
		return nil, nil // Nothing is specified, so every image is fine, even one that cannot be parsed.
	}
	if config.DNS.ImageTag != "" {
		is.tag = config.DNS.ImageTag
	}
	change := &dnsChange{}
	if change.from, err = tagVersion(was.tag); err != nil {
		return nil, err
	}
	if change.to, err = tagVersion(is.tag); err != nil {
		return nil, err
	}
	is.repository = dnsRepository(was.repository, change.to, config)
	if is == was {
		return nil, nil
	}
	if change.to.LT(change.from) {
		return nil, fmt.Errorf("cannot downgrade CoreDNS from %s to %s: set dns.imageTag of the ClusterConfiguration to a newer version",
			was.tag, is.tag)
	}
	change.image = is.String()
	return change, nil
}

// maxDocument is the maximum size of documents from a workload cluster. No API server accepts larger ones.
const maxDocument = 1 << 20

// migrate converts the configuration of one version of CoreDNS to another. The parser of the library may panic on invalid
// input.
func migrate(from, to, corefile string) (migrated string, err error) {
	if len(corefile) > maxDocument {
		return "", fmt.Errorf("it has %d bytes, more than %d", len(corefile), maxDocument)
	}
	defer failsafe.Recover("parsing it", &err)
	return migration.Migrate(from, to, corefile, false)
}

// migrateCorefile migrates the configuration of CoreDNS to the new version, and keeps a backup in the ConfigMap.
func (c *Cluster) migrateCorefile(ctx context.Context, change *dnsChange) error {
	if change.from.EQ(change.to) {
		return nil
	}
	stored := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: dnsName}
	if err := c.Client.Get(ctx, key, stored); err != nil {
		return fmt.Errorf("reading the configuration of CoreDNS, ConfigMap %s: %w", key, err)
	}
	corefile, ok := stored.Data[corefileKey]
	if !ok {
		return fmt.Errorf("the configuration of CoreDNS, ConfigMap %s, has no key %q", key, corefileKey)
	}
	migrated, err := migrate(change.from.String(), change.to.String(), corefile)
	if err != nil {
		return fmt.Errorf("migrating the configuration of CoreDNS from %s to %s: %w", change.from, change.to, err)
	}
	// After an interruption it is already migrated, and the backup must not be replaced.
	if migrated == corefile {
		return nil
	}
	before := stored.DeepCopy()
	stored.Data[corefileBackupKey] = corefile
	stored.Data[corefileKey] = migrated
	return c.patch(ctx, stored, before)
}

// allowEndpointSlices permits CoreDNS to read EndpointSlices, which it needs from v1.8.1 on.
func (c *Cluster) allowEndpointSlices(ctx context.Context, version semver.Version) error {
	if version.LT(semver.Version{Major: 1, Minor: 8, Patch: 1}) {
		return nil
	}
	role := &rbacv1.ClusterRole{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: dnsRole}, role); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // CoreDNS was not installed by kubeadm.
		}
		return fmt.Errorf("reading the permissions of CoreDNS, ClusterRole %s: %w", dnsRole, err)
	}
	const group, resource = "discovery.k8s.io", "endpointslices"
	allowed := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) &&
			slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
	})
	if allowed {
		return nil
	}
	before := role.DeepCopy()
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"list", "watch"},
	})
	return c.patch(ctx, role, before)
}

// recordDNS sets the image in the configuration of kubeadm, so that kubeadm uses the same one.
func (c *Cluster) recordDNS(ctx context.Context, desired bootstrapv1.DNS) error {
	return c.changeKubeadm(ctx, func(doc map[string]any) error {
		dns, _ := doc["dns"].(map[string]any)
		if dns == nil {
			dns = map[string]any{}
		}
		for field, value := range map[string]string{"imageRepository": desired.ImageRepository, "imageTag": desired.ImageTag} {
			if value != "" {
				dns[field] = value
			}
		}
		if len(dns) > 0 {
			doc["dns"] = dns
		}
		return nil
	})
}

// mountCorefile makes CoreDNS read its configuration: an interrupted upgrade by another tool may have left it reading the
// backup.
func mountCorefile(pod *corev1.PodSpec) {
	for i := range pod.Volumes {
		source := pod.Volumes[i].ConfigMap
		if pod.Volumes[i].Name != dnsVolume || source == nil || source.Name != dnsName {
			continue
		}
		for j := range source.Items {
			if source.Items[j].Path == corefileKey {
				source.Items[j].Key = corefileKey
			}
		}
	}
}

// tolerateControlPlane lets CoreDNS run on control plane Nodes with the new taint if it tolerates the old one.
func tolerateControlPlane(pod *corev1.PodSpec) {
	has := func(key string) bool {
		return slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.Key == key })
	}
	if has(oldControlPlaneTaint) && !has(snapshot.NodeRole) {
		pod.Tolerations = append(pod.Tolerations, corev1.Toleration{Key: snapshot.NodeRole, Effect: corev1.TaintEffectNoSchedule})
	}
}
