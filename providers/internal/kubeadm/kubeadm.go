// Package kubeadm defaults and validates KubeadmConfigSpecs, for the bootstrap and the control plane provider, and converts them to
// kubeadm's own configuration. The rules are the same for clients of v1beta1, which can write what v1beta2 does not have: functions for
// older specs are for that.
package kubeadm

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// Default sets the defaults of a spec for the client of the request in ctx: objects in v1beta2 have none, as in Cluster API v1.14, so that
// what it wrote stays as it is.
func Default(ctx context.Context, spec *bootstrapv1.KubeadmConfigSpec, older *bootstrapv1beta1.KubeadmConfigSpec) {
	if webhooks.RequestedIn(ctx, bootstrapv1.GroupVersion.Version) {
		return
	}
	DefaultConfigSpec(spec)
	DefaultOlderConfigSpec(spec, older)
}

// DefaultConfigSpec sets the defaults that v1beta1 has: the format and the image pull policy of configurations that are defined. Timeouts
// alone define none: v1beta1 has them elsewhere.
func DefaultConfigSpec(spec *bootstrapv1.KubeadmConfigSpec) {
	if spec.Format == "" {
		spec.Format = bootstrapv1.CloudConfig
	}
	initialize, join := spec.InitConfiguration, spec.JoinConfiguration
	initialize.Timeouts, join.Timeouts = bootstrapv1.Timeouts{}, bootstrapv1.Timeouts{}
	defaultRegistration(&spec.InitConfiguration.NodeRegistration, Defined(initialize))
	defaultRegistration(&spec.JoinConfiguration.NodeRegistration, Defined(join))
}

// DefaultOlderConfigSpec sets the defaults that a spec has because of what only its older form has: configurations that are empty.
func DefaultOlderConfigSpec(spec *bootstrapv1.KubeadmConfigSpec, older *bootstrapv1beta1.KubeadmConfigSpec) {
	defaultRegistration(&spec.InitConfiguration.NodeRegistration, older.InitConfiguration != nil)
	defaultRegistration(&spec.JoinConfiguration.NodeRegistration, older.JoinConfiguration != nil)
}

func defaultRegistration(registration *bootstrapv1.NodeRegistrationOptions, defined bool) {
	if defined && registration.ImagePullPolicy == "" {
		registration.ImagePullPolicy = corev1.PullIfNotPresent
	}
}

// ValidateConfigSpec validates a spec at path. old is nil on creation; a number that it has is kept. ignition is whether its feature gate
// is enabled.
func ValidateConfigSpec(old, spec *bootstrapv1.KubeadmConfigSpec, path *field.Path, ignition bool) field.ErrorList {
	all := webhooks.WithoutOld(validateNumbers(old, path), validateNumbers(spec, path))
	all = append(all, validateFiles(spec.Files, path.Child("files"))...)
	all = append(all, webhooks.WithoutOld(validateTemplates(old, path), validateTemplates(spec, path))...)
	all = append(all, webhooks.WithoutOld(validatePartitions(old, path), validatePartitions(spec, path))...)
	all = append(all, webhooks.WithoutOld(validateValidity(old, path), validateValidity(spec, path))...)
	all = append(all, validateUsers(spec.Users, path.Child("users"))...)
	return append(all, validateIgnition(spec, path, ignition)...)
}

// ValidateOlderConfigSpec validates what only the older form of a spec has, see ValidateConfigSpec: that includes sources that are empty.
func ValidateOlderConfigSpec(older *bootstrapv1beta1.KubeadmConfigSpec, path *field.Path, ignition bool) field.ErrorList {
	var all field.ErrorList
	for i, f := range older.Files {
		if f.ContentFrom != nil && !Defined(*f.ContentFrom) {
			all = append(all, missing(path.Child("files").Index(i).Child("contentFrom"), "", "")...)
		}
	}
	for i, u := range older.Users {
		if u.PasswdFrom != nil && !Defined(*u.PasswdFrom) {
			all = append(all, missing(path.Child("users").Index(i).Child("passwdFrom"), "", "")...)
		}
	}
	if ignition && older.Format == bootstrapv1beta1.Ignition && older.UseExperimentalRetryJoin {
		all = append(all, field.Forbidden(path.Child("useExperimentalRetryJoin"), unsupported))
	}
	return all
}

// missing returns the errors for a source, the entry of a Secret, that is incomplete.
func missing(path *field.Path, name, key string) field.ErrorList {
	var all field.ErrorList
	if name == "" {
		all = append(all, field.Required(path.Child("secret", "name"), "the name of the Secret is required"))
	}
	if key == "" {
		all = append(all, field.Required(path.Child("secret", "key"), "the key in the Secret is required"))
	}
	return all
}

func validateFiles(files []bootstrapv1.File, path *field.Path) field.ErrorList {
	var all field.ErrorList
	seen := map[string]bool{}
	for i, f := range files {
		at := path.Index(i)
		if Defined(f.ContentFrom) {
			if f.Content != "" {
				all = append(all, field.Invalid(at, f.Path, "content and contentFrom are mutually exclusive"))
			}
			all = append(all, missing(at.Child("contentFrom"), f.ContentFrom.Secret.Name, f.ContentFrom.Secret.Key)...)
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
		if !Defined(u.PasswdFrom) {
			continue
		}
		at := path.Index(i)
		if u.Passwd != "" {
			all = append(all, field.Invalid(at, u.Name, "passwd and passwdFrom are mutually exclusive"))
		}
		all = append(all, missing(at.Child("passwdFrom"), u.PasswdFrom.Secret.Name, u.PasswdFrom.Secret.Key)...)
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
		if Defined(spec.Ignition) {
			all = append(all, field.Forbidden(path.Child("ignition"), needed))
		}
		return all
	}
	if spec.Format != bootstrapv1.Ignition {
		if !Defined(spec.Ignition) {
			return nil
		}
		return field.ErrorList{
			field.Invalid(path.Child("format"), spec.Format, fmt.Sprintf("must be %q when ignition is set", bootstrapv1.Ignition)),
		}
	}
	all := validateIgnitionUsers(spec, path)
	if len(spec.BootCommands) > 0 {
		all = append(all, field.Forbidden(path.Child("bootCommands"), unsupported))
	}
	for i, f := range spec.Files {
		if f.Encoding == bootstrapv1.Gzip || f.Encoding == bootstrapv1.GzipBase64 {
			all = append(all, field.Forbidden(path.Child("files").Index(i).Child("encoding"), unsupported))
		}
	}
	return append(all, validateIgnitionDisks(spec.DiskSetup, path.Child("diskSetup"))...)
}

const unsupported = "is not supported with format ignition"

func validateIgnitionUsers(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i, u := range spec.Users {
		if ptr.Deref(u.Inactive, false) {
			all = append(all, field.Forbidden(path.Child("users").Index(i).Child("inactive"), unsupported))
		}
	}
	return all
}

func validateIgnitionDisks(disks bootstrapv1.DiskSetup, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for i, p := range disks.Partitions {
		if len(p.DiskLayout) > 0 {
			all = append(all, field.Forbidden(path.Child("partitions").Index(i).Child("diskLayout"), unsupported))
		}
		if p.TableType != "" && p.TableType != "gpt" {
			all = append(all,
				field.Invalid(path.Child("partitions").Index(i).Child("tableType"), p.TableType, "only gpt is supported with format ignition"))
		}
	}
	for i, f := range disks.Filesystems {
		at := path.Child("filesystems").Index(i)
		if f.ReplaceFS != "" {
			all = append(all, field.Forbidden(at.Child("replaceFS"), unsupported))
		}
		if f.Partition != "" {
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
