// Package kubeadm defaults and validates KubeadmConfigSpecs, for the bootstrap and the control plane provider. The rules
// are those of the v1beta1 API.
package kubeadm

import (
	"fmt"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// DefaultConfigSpec sets the defaults of a spec: the format and the image pull policy.
func DefaultConfigSpec(spec *bootstrapv1.KubeadmConfigSpec) {
	if spec.Format == "" {
		spec.Format = bootstrapv1.CloudConfig
	}
	if spec.InitConfiguration != nil && spec.InitConfiguration.NodeRegistration.ImagePullPolicy == "" {
		spec.InitConfiguration.NodeRegistration.ImagePullPolicy = string(corev1.PullIfNotPresent)
	}
	if spec.JoinConfiguration != nil && spec.JoinConfiguration.NodeRegistration.ImagePullPolicy == "" {
		spec.JoinConfiguration.NodeRegistration.ImagePullPolicy = string(corev1.PullIfNotPresent)
	}
}

// ValidateConfigSpec validates a spec at path. old is nil on creation; a number that it has is kept. ignition is whether its feature gate
// is enabled.
func ValidateConfigSpec(old, spec *bootstrapv1.KubeadmConfigSpec, path *field.Path, ignition bool) field.ErrorList {
	all := webhooks.WithoutOld(validateNumbers(old, path), validateNumbers(spec, path))
	all = append(all, validateFiles(spec.Files, path.Child("files"))...)
	all = append(all, validateUsers(spec.Users, path.Child("users"))...)
	return append(all, validateIgnition(spec, path, ignition)...)
}

func validateFiles(files []bootstrapv1.File, path *field.Path) field.ErrorList {
	var all field.ErrorList
	seen := map[string]bool{}
	for i, f := range files {
		at := path.Index(i)
		if f.ContentFrom != nil {
			if f.Content != "" {
				all = append(all, field.Invalid(at, f.Path, "content and contentFrom are mutually exclusive"))
			}
			if f.ContentFrom.Secret.Name == "" {
				all = append(all, field.Required(at.Child("contentFrom", "secret", "name"), "the name of the Secret is required"))
			}
			if f.ContentFrom.Secret.Key == "" {
				all = append(all, field.Required(at.Child("contentFrom", "secret", "key"), "the key in the Secret is required"))
			}
		}
		if seen[f.Path] {
			all = append(all, field.Invalid(at.Child("path"), f.Path, "must be unique, but another file has the same path"))
		}
		seen[f.Path] = true
	}
	return all
}

func validateUsers(users []bootstrapv1.User, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i, u := range users {
		if u.PasswdFrom == nil {
			continue
		}
		at := path.Index(i)
		if u.Passwd != nil {
			all = append(all, field.Invalid(at, u.Name, "passwd and passwdFrom are mutually exclusive"))
		}
		if u.PasswdFrom.Secret.Name == "" {
			all = append(all, field.Required(at.Child("passwdFrom", "secret", "name"), "the name of the Secret is required"))
		}
		if u.PasswdFrom.Secret.Key == "" {
			all = append(all, field.Required(at.Child("passwdFrom", "secret", "key"), "the key in the Secret is required"))
		}
	}
	return all
}

func validateIgnition(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path, enabled bool) field.ErrorList {
	if !enabled {
		var all field.ErrorList
		const needed = "can only be set if the KubeadmBootstrapFormatIgnition feature gate is enabled"
		if spec.Format == bootstrapv1.Ignition {
			all = append(all, field.Forbidden(path.Child("format"), needed))
		}
		if spec.Ignition != nil {
			all = append(all, field.Forbidden(path.Child("ignition"), needed))
		}
		return all
	}
	if spec.Format != bootstrapv1.Ignition {
		if spec.Ignition == nil {
			return nil
		}
		return field.ErrorList{
			field.Invalid(path.Child("format"), spec.Format, fmt.Sprintf("must be %q when ignition is set", bootstrapv1.Ignition)),
		}
	}
	all := validateIgnitionUsers(spec, path)
	if spec.UseExperimentalRetryJoin {
		all = append(all, field.Forbidden(path.Child("useExperimentalRetryJoin"), unsupported))
	}
	for i, f := range spec.Files {
		if f.Encoding == bootstrapv1.Gzip || f.Encoding == bootstrapv1.GzipBase64 {
			all = append(all, field.Forbidden(path.Child("files").Index(i).Child("encoding"), unsupported))
		}
	}
	if spec.DiskSetup != nil {
		all = append(all, validateIgnitionDisks(spec.DiskSetup, path.Child("diskSetup"))...)
	}
	return all
}

const unsupported = "is not supported with format ignition"

func validateIgnitionUsers(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i, u := range spec.Users {
		if u.Inactive != nil && *u.Inactive {
			all = append(all, field.Forbidden(path.Child("users").Index(i).Child("inactive"), unsupported))
		}
	}
	return all
}

func validateIgnitionDisks(disks *bootstrapv1.DiskSetup, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i, p := range disks.Partitions {
		if p.TableType != nil && *p.TableType != "gpt" {
			all = append(all,
				field.Invalid(path.Child("partitions").Index(i).Child("tableType"), *p.TableType, "only gpt is supported with format ignition"))
		}
	}
	for i, f := range disks.Filesystems {
		at := path.Child("filesystems").Index(i)
		if f.ReplaceFS != nil {
			all = append(all, field.Forbidden(at.Child("replaceFS"), unsupported))
		}
		if f.Partition != nil {
			all = append(all, field.Forbidden(at.Child("partition"), unsupported))
		}
	}
	return all
}

// FrozenRegistry reports whether kubeadm of a version pulls from k8s.gcr.io by default, which has no images of new versions, and returns
// the first version of the minor version that does not. A control plane cannot be upgraded to such a version without an image repository.
func FrozenRegistry(v semver.Version) (fixed string, frozen bool) {
	if v.LT(semver.MustParse("1.22.0")) || v.Major != 1 || v.Minor > 25 {
		return "", false
	}
	fixed = map[uint64]string{22: "1.22.17", 23: "1.23.15", 24: "1.24.9", 25: "1.25.0-alpha.1"}[v.Minor]
	return fixed, v.LT(semver.MustParse(fixed))
}
