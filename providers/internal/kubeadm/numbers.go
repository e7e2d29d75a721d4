package kubeadm

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

const maxPort = 65535

// validateNumbers validates the numbers of a spec, which may be nil. Only those are rejected with which kubeadm fails on the machine.
func validateNumbers(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if spec == nil {
		return nil
	}
	at := path.Child("initConfiguration")
	all = append(all, validatePort(spec.InitConfiguration.LocalAPIEndpoint.BindPort, at.Child("localAPIEndpoint", "bindPort"))...)
	all = append(all, validateTimeout(spec.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds,
		at.Child("timeouts", "controlPlaneComponentHealthCheckSeconds"))...)
	at = path.Child("joinConfiguration")
	if c := spec.JoinConfiguration.ControlPlane; c != nil {
		all = append(all, validatePort(c.LocalAPIEndpoint.BindPort, at.Child("controlPlane", "localAPIEndpoint", "bindPort"))...)
	}
	timeouts := spec.JoinConfiguration.Timeouts
	all = append(all, validateTimeout(timeouts.ControlPlaneComponentHealthCheckSeconds,
		at.Child("timeouts", "controlPlaneComponentHealthCheckSeconds"))...)
	all = append(all, validateTimeout(timeouts.TLSBootstrapSeconds, at.Child("timeouts", "tlsBootstrapSeconds"))...)
	return all
}

// validatePort accepts zero, for which kubeadm uses its default.
func validatePort(port int32, path *field.Path) field.ErrorList {
	if port >= 0 && port <= maxPort {
		return nil
	}
	return field.ErrorList{field.Invalid(path, port, fmt.Sprintf("must be a port, at most %d", maxPort))}
}

func validateTimeout(seconds *int32, path *field.Path) field.ErrorList {
	if seconds == nil || *seconds >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *seconds, "must not be negative: kubeadm would give up at once")}
}

// validatePartitions rejects partitions that do not fit on their device; the spec may be nil.
func validatePartitions(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	if spec == nil {
		return nil
	}
	var all field.ErrorList
	for i, p := range spec.DiskSetup.Partitions {
		at, total := path.Child("diskSetup", "partitions").Index(i), int32(0)
		for _, part := range p.DiskLayout {
			total += part.Percentage
		}
		if total > 100 {
			all = append(all, field.Invalid(at.Child("diskLayout"), total, "the percentages must add up to at most 100"))
		}
		if len(p.DiskLayout) > 0 && p.Layout != nil {
			all = append(all, field.Invalid(at, p.Device, "layout and diskLayout are mutually exclusive"))
		}
	}
	return all
}

// defaultCAValidityDays is kubeadm's validity of CAs.
const defaultCAValidityDays = 3650

// validateValidity rejects certificates that are valid for longer than their CA; the spec may be nil.
func validateValidity(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	if spec == nil {
		return nil
	}
	config := spec.ClusterConfiguration
	ca := cmp.Or(config.CACertificateValidityPeriodDays, defaultCAValidityDays)
	if config.CertificateValidityPeriodDays <= ca {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("clusterConfiguration", "certificateValidityPeriodDays"),
		config.CertificateValidityPeriodDays, fmt.Sprintf("must be at most %d, the validity of CAs", ca))}
}
