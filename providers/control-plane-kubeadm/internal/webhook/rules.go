package webhook

import (
	"fmt"
	"net/url"
	"regexp"

	"github.com/blang/semver/v4"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/providers/internal/nametemplate"
)

// leastExpiryDays is the minimum of certificatesExpiryDays: a rollout takes time.
const leastExpiryDays = 7

// leastReplicasWithoutSurge is the minimum number of replicas for a quorum of etcd while one Machine is being replaced.
const leastReplicasWithoutSurge = 3

func validateMetadata(m clusterv1.ObjectMeta, path *field.Path) field.ErrorList {
	return append(metav1validation.ValidateLabels(m.Labels, path.Child("labels")),
		apivalidation.ValidateAnnotations(m.Annotations, path.Child("annotations"))...)
}

// validateRollout validates when and how Machines are replaced. The number of replicas is nil if it is unknown.
func validateRollout(r controlplanev1.KubeadmControlPlaneRolloutSpec, replicas *int32, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if days := r.Before.CertificatesExpiryDays; days != 0 {
		all = validateExpiryDays(days, path.Child("before", "certificatesExpiryDays"))
	}
	return append(all, validateStrategy(r.Strategy, replicas, path.Child("strategy"))...)
}

func validateExpiryDays(days int32, path *field.Path) field.ErrorList {
	if days >= leastExpiryDays {
		return nil
	}
	return field.ErrorList{field.Invalid(path, days, fmt.Sprintf("must be greater than or equal to %d", leastExpiryDays))}
}

func validateStrategy(r controlplanev1.KubeadmControlPlaneRolloutStrategy, replicas *int32, path *field.Path) field.ErrorList {
	if !kubeadm.Defined(r) {
		return nil
	}
	var all field.ErrorList
	if r.Type != controlplanev1.RollingUpdateStrategyType {
		all = append(all, field.Required(path.Child("type"), "only RollingUpdate is supported"))
	}
	if r.RollingUpdate.MaxSurge == nil {
		return all
	}
	at := path.Child("rollingUpdate", "maxSurge")
	surge := r.RollingUpdate.MaxSurge
	if value := surge.IntValue(); value != 0 && value != 1 || surge.String() != fmt.Sprint(value) {
		all = append(all, field.Invalid(at, surge.String(), "must be 0 or 1"))
	} else if value == 0 && replicas != nil && *replicas < leastReplicasWithoutSurge {
		all = append(all, field.Invalid(at, value, fmt.Sprintf("can be 0 only with at least %d replicas", leastReplicasWithoutSurge)))
	}
	return all
}

func validateClusterConfiguration(c *bootstrapv1.ClusterConfiguration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	dns := path.Child("dns", "imageTag")
	switch tag := c.DNS.ImageTag; {
	case tag == "":
	case !isTag(tag):
		all = append(all, field.Invalid(dns, tag, "is not a valid image tag"))
	case !hasVersion(tag):
		all = append(all, field.Invalid(dns, tag, "must begin with a version, such as v1.11.1, which upgrades of CoreDNS depend on"))
	}
	local := path.Child("etcd", "local")
	if kubeadm.Defined(c.Etcd.Local) && kubeadm.Defined(c.Etcd.External) {
		all = append(all, bothEtcds(local))
	}
	if tag := c.Etcd.Local.ImageTag; tag != "" && !isTag(tag) {
		all = append(all, field.Invalid(local.Child("imageTag"), tag, "is not a valid image tag"))
	}
	return all
}

func bothEtcds(path *field.Path) *field.Error {
	return field.Forbidden(path, "cannot have both external and local etcd")
}

const exampleEndpoint = "such as https://10.0.0.5:2379"

func noEndpoints(path *field.Path) *field.Error {
	return field.Required(path.Child("endpoints"), "must be the URLs of the members, "+exampleEndpoint)
}

// validateExternalEtcd validates the endpoints of external etcd as kubeadm does on the machines. Those of templates may be placeholders,
// which patches of a ClusterClass replace.
func validateExternalEtcd(external bootstrapv1.ExternalEtcd, path *field.Path) field.ErrorList {
	if !kubeadm.Defined(external) {
		return nil
	}
	if len(external.Endpoints) == 0 {
		return field.ErrorList{noEndpoints(path)}
	}
	unencrypted := external.CAFile == "" && external.CertFile == "" && external.KeyFile == ""
	var all field.ErrorList
	for i, endpoint := range external.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Hostname() == "" || u.Scheme != "https" && (u.Scheme != "http" || !unencrypted) {
			all = append(all, field.Invalid(path.Child("endpoints").Index(i), endpoint, "must be a URL with https, "+exampleEndpoint))
		}
	}
	return all
}

func isTag(tag string) bool {
	return regexp.MustCompile(`^\w[\w.-]{0,127}$`).MatchString(tag)
}

func hasVersion(tag string) bool {
	_, err := tolerant(tag)
	return err == nil
}

// tolerant parses major.minor.patch at the beginning of a text.
func tolerant(text string) (semver.Version, error) {
	found := regexp.MustCompile(`^v?(\d+\.\d+\.\d+)`).FindStringSubmatch(text)
	if found == nil {
		return semver.Version{}, fmt.Errorf("%q does not begin with a version", text)
	}
	return semver.ParseTolerant(found[1])
}

// isVersion reports whether a version has the format that all kinds of Cluster API require.
func isVersion(version string) bool {
	return regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_\.+]*)?$`).MatchString(version)
}

func validateNaming(n controlplanev1.MachineNamingSpec, path *field.Path) field.ErrorList {
	return nametemplate.CheckMachine(n.Template, "kubeadmControlPlane", path.Child("machineNaming", "template"))
}
