package machinedeployment

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// identity identifies a MachineSet within its deployment.
type identity struct {
	name string
	// hash is the value of the label machine-template-hash; it ends with the suffix of the name.
	hash string
}

// identityOf derives the identity of a MachineSet from its purpose, so that creating it twice is a conflict. The values of more
// distinguish sets for the same purpose.
func identityOf(md *clusterv1.MachineDeployment, notBefore time.Time, more ...string) identity {
	return identityWith(hashOf(&md.Spec.Template, md.Namespace), md, notBefore, more...)
}

// identitiesOf returns the identities that the MachineSet of a purpose may have been created with: in v1beta1, the references of a
// template may lack their namespace, which is in its hash.
func identitiesOf(md *clusterv1.MachineDeployment, notBefore time.Time, more ...string) []identity {
	return []identity{identityOf(md, notBefore, more...), identityWith(hashOf(&md.Spec.Template, ""), md, notBefore, more...)}
}

func identityWith(hash string, md *clusterv1.MachineDeployment, notBefore time.Time, more ...string) identity {
	parts := []string{string(md.UID), hash}
	if !notBefore.IsZero() {
		parts = append(parts, notBefore.UTC().Format(time.RFC3339))
	}
	suffix := naming.Suffix(append(parts, more...)...)
	return identity{name: naming.WithSuffix(md.Name, suffix), hash: hash + "-" + suffix}
}

// hashOf returns a hash of the part of a template that cannot change without replacing Machines, with the namespace of its references.
// It is in the names and labels of MachineSets, so that a template must always have the same: that of its types in v1beta1. Fields that
// these did not have when the first hashes were stored do not count.
func hashOf(template *clusterv1.MachineTemplateSpec, namespace string) string {
	later := strings.NewReplacer(
		" ReadinessGates:([]v1beta2.MachineReadinessGate)<nil>", "",
		" Taints:([]v1beta2.MachineTaint)<nil>", "",
	)
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(later.Replace(dump.ForHash(hashed(template, namespace))))) // a hash never fails to write
	return strconv.FormatUint(uint64(sum.Sum32()), 10)
}

// hashed returns what hashOf hashes. What v1beta1 does not set is nil, also a source of bootstrap data that needs none.
func hashed(template *clusterv1.MachineTemplateSpec, namespace string) *clusterv1beta1.MachineTemplateSpec {
	from := rolledOut(template).Spec
	reference := func(ref clusterv1.ContractVersionedObjectReference) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: ref.APIGroup, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
	}
	optional := func(value string) *string {
		if value == "" {
			return nil
		}
		return &value
	}
	to := clusterv1beta1.MachineSpec{
		ClusterName: from.ClusterName, InfrastructureRef: reference(from.InfrastructureRef),
		Version: optional(from.Version), ProviderID: optional(from.ProviderID), FailureDomain: optional(from.FailureDomain),
	}
	if from.Bootstrap.ConfigRef.IsDefined() {
		to.Bootstrap = clusterv1beta1.Bootstrap{
			ConfigRef: ptr.To(reference(from.Bootstrap.ConfigRef)), DataSecretName: from.Bootstrap.DataSecretName,
		}
	} else {
		to.Bootstrap.DataSecretName = optional(ptr.Deref(from.Bootstrap.DataSecretName, ""))
	}
	return &clusterv1beta1.MachineTemplateSpec{Spec: to}
}
