package kubeadm

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// ControlPlanes converts KubeadmControlPlanes.
type ControlPlanes struct {
	// Version returns the newest version of a kind that the contract supports. References of v1beta1 have it, those of v1beta2 do
	// not. If it fails, v1beta1 is assumed: a reference to a kind that is not installed must not make objects unreadable.
	Version func(ctx context.Context, kind schema.GroupKind) (schema.GroupVersionKind, error)
}

// ToHub converts a KubeadmControlPlane from v1beta1 to v1beta2.
func (c ControlPlanes) ToHub(
	ctx context.Context, src *controlplanev1beta1.KubeadmControlPlane, dst *controlplanev1.KubeadmControlPlane,
) error {
	return c.kind().ToHub(ctx, src, dst)
}

// FromHub converts a KubeadmControlPlane from v1beta2 to v1beta1.
func (c ControlPlanes) FromHub(
	ctx context.Context, src *controlplanev1.KubeadmControlPlane, dst *controlplanev1beta1.KubeadmControlPlane,
) error {
	return c.kind().ToSpoke(ctx, src, dst)
}

// ControlPlaneTemplateToHub converts a KubeadmControlPlaneTemplate from v1beta1 to v1beta2.
func ControlPlaneTemplateToHub(
	ctx context.Context, src *controlplanev1beta1.KubeadmControlPlaneTemplate, dst *controlplanev1.KubeadmControlPlaneTemplate,
) error {
	return controlPlaneTemplate().ToHub(ctx, src, dst)
}

// ControlPlaneTemplateFromHub converts a KubeadmControlPlaneTemplate from v1beta2 to v1beta1.
func ControlPlaneTemplateFromHub(
	ctx context.Context, src *controlplanev1.KubeadmControlPlaneTemplate, dst *controlplanev1beta1.KubeadmControlPlaneTemplate,
) error {
	return controlPlaneTemplate().ToSpoke(ctx, src, dst)
}

// kind is how KubeadmControlPlanes are converted.
func (c ControlPlanes) kind() *lossless.Kind[*controlplanev1.KubeadmControlPlane, *controlplanev1beta1.KubeadmControlPlane] {
	return &lossless.Kind[*controlplanev1.KubeadmControlPlane, *controlplanev1beta1.KubeadmControlPlane]{
		Hub:      controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"),
		Spoke:    controlplanev1beta1.GroupVersion.WithKind("KubeadmControlPlane"),
		NewHub:   func() *controlplanev1.KubeadmControlPlane { return &controlplanev1.KubeadmControlPlane{} },
		NewSpoke: func() *controlplanev1beta1.KubeadmControlPlane { return &controlplanev1beta1.KubeadmControlPlane{} },
		Up: func(o object) {
			controlPlaneSpecUp(lossless.At(o, "spec"))
			controlPlaneStatusUp(lossless.At(o, "status"))
		},
		Down: func(ctx context.Context, o object) {
			controlPlaneSpecDown(lossless.At(o, "spec"))
			controlPlaneStatusDown(lossless.At(o, "status"))
			c.completeReference(ctx, lossless.At(o, "spec", "machineTemplate", infrastructureRef))
			fillNamespace(o)
		},
		Fill:     fillNamespace,
		Present:  present(),
		Whole:    []string{infrastructureRef},
		Grouping: append(controlPlaneGrouping(), "initialization", "deprecated", "v1beta1"),
	}
}

// controlPlaneTemplate is how KubeadmControlPlaneTemplates are converted.
func controlPlaneTemplate() *lossless.Kind[*controlplanev1.KubeadmControlPlaneTemplate, *controlplanev1beta1.KubeadmControlPlaneTemplate] {
	return &lossless.Kind[*controlplanev1.KubeadmControlPlaneTemplate, *controlplanev1beta1.KubeadmControlPlaneTemplate]{
		Hub:   controlplanev1.GroupVersion.WithKind("KubeadmControlPlaneTemplate"),
		Spoke: controlplanev1beta1.GroupVersion.WithKind("KubeadmControlPlaneTemplate"),
		NewHub: func() *controlplanev1.KubeadmControlPlaneTemplate {
			return &controlplanev1.KubeadmControlPlaneTemplate{}
		},
		NewSpoke: func() *controlplanev1beta1.KubeadmControlPlaneTemplate {
			return &controlplanev1beta1.KubeadmControlPlaneTemplate{}
		},
		Up: func(o object) { controlPlaneSpecUp(lossless.At(o, "spec", "template", "spec")) },
		Down: func(_ context.Context, o object) {
			controlPlaneSpecDown(lossless.At(o, "spec", "template", "spec"))
			fillMachineTemplate(o)
		},
		Fill:     fillMachineTemplate,
		Present:  append(present(), "machineTemplate"),
		Grouping: controlPlaneGrouping(),
	}
}

// controlPlaneGrouping are the objects in the spec of v1beta2 that v1beta1 does not have. The other one is that of machineTemplate.
func controlPlaneGrouping() []string { return append(grouping(), "rollout", "deletion", "spec") }

// infrastructureRef is the field of the reference to the template of the Machines' infrastructure.
const infrastructureRef = "infrastructureRef"

// fieldsOfControlPlane are the paths of fields of v1beta1's and of v1beta2's spec.
func fieldsOfControlPlane() [][2]path {
	return [][2]path{
		{{"rolloutBefore"}, {"rollout", "before"}},
		{{"rolloutAfter"}, {"rollout", "after"}},
		{{"rolloutStrategy"}, {"rollout", "strategy"}},
		{{"machineNamingStrategy"}, {"machineNaming"}},
		{{"machineTemplate", infrastructureRef}, {"machineTemplate", "spec", infrastructureRef}},
		{{"machineTemplate", "readinessGates"}, {"machineTemplate", "spec", "readinessGates"}},
		{{"machineTemplate", "taints"}, {"machineTemplate", "spec", "taints"}},
		{{"remediationStrategy", "maxRetry"}, {"remediation", "maxRetry"}},
	}
}

// durationsOfControlPlane are the paths of durations of v1beta1's spec, and of the seconds of v1beta2's.
func durationsOfControlPlane() [][2]path {
	return [][2]path{
		{{"machineTemplate", "nodeDrainTimeout"}, {"machineTemplate", "spec", "deletion", "nodeDrainTimeoutSeconds"}},
		{{"machineTemplate", "nodeVolumeDetachTimeout"}, {"machineTemplate", "spec", "deletion", "nodeVolumeDetachTimeoutSeconds"}},
		{{"machineTemplate", "nodeDeletionTimeout"}, {"machineTemplate", "spec", "deletion", "nodeDeletionTimeoutSeconds"}},
		{{"remediationStrategy", "retryPeriod"}, {"remediation", "retryPeriodSeconds"}},
		{{"remediationStrategy", "minHealthyPeriod"}, {"remediation", "minHealthyPeriodSeconds"}},
	}
}

// controlPlaneSpecUp converts the spec of a control plane to v1beta2.
func controlPlaneSpecUp(spec object) {
	if spec == nil {
		return
	}
	specUp(lossless.At(spec, "kubeadmConfigSpec"))
	if seconds, ok := lossless.Seconds(lossless.At(spec, "remediationStrategy")["retryPeriod"]); ok && seconds == 0 {
		delete(lossless.At(spec, "remediationStrategy"), "retryPeriod") // v1beta1 cannot tell that it is unset.
	}
	for _, field := range fieldsOfControlPlane() {
		lossless.Move(spec, field[0], field[1])
	}
	for _, field := range durationsOfControlPlane() {
		lossless.MoveDuration(spec, field[0], field[1])
	}
	delete(spec, "remediationStrategy")
	if reference := lossless.At(spec, "machineTemplate", "spec", infrastructureRef); reference != nil {
		referenceUp(reference)
	}
}

// controlPlaneSpecDown converts the spec of a control plane to v1beta1, except for the version of references.
func controlPlaneSpecDown(spec object) {
	if spec == nil {
		return
	}
	specDown(lossless.At(spec, "kubeadmConfigSpec"))
	for _, field := range fieldsOfControlPlane() {
		lossless.Move(spec, field[1], field[0])
	}
	for _, field := range durationsOfControlPlane() {
		lossless.MoveSeconds(spec, field[1], field[0])
	}
	for _, name := range []string{"rollout", "remediation"} {
		delete(spec, name)
	}
	delete(lossless.At(spec, "machineTemplate"), "spec")
}

// referenceUp converts a reference to v1beta2, which does not have a version and a namespace.
func referenceUp(reference object) {
	apiVersion, _ := reference["apiVersion"].(string)
	kind, name := reference["kind"], reference["name"]
	clear(reference)
	reference["kind"], reference["name"] = kind, name
	if version, err := schema.ParseGroupVersion(apiVersion); err == nil && version.Group != "" {
		reference["apiGroup"] = version.Group
	}
}

// completeReference replaces the group of a reference by its version in v1beta1.
func (c ControlPlanes) completeReference(ctx context.Context, reference object) {
	if reference == nil {
		return
	}
	group, _ := reference["apiGroup"].(string)
	kind, _ := reference["kind"].(string)
	delete(reference, "apiGroup")
	if group == "" {
		return
	}
	version := schema.GroupVersion{Group: group, Version: "v1beta1"}
	if c.Version != nil {
		if found, err := c.Version(ctx, schema.GroupKind{Group: group, Kind: kind}); err == nil {
			version = found.GroupVersion()
		}
	}
	reference["apiVersion"] = version.String()
}

// fillNamespace sets the namespace of the reference of a control plane, which is that of the object.
func fillNamespace(o object) {
	reference, namespace := lossless.At(o, "spec", "machineTemplate", infrastructureRef), lossless.At(o, "metadata")["namespace"]
	if reference != nil && namespace != nil && reference["namespace"] == nil {
		reference["namespace"] = namespace
	}
}

// fillMachineTemplate sets the empty template of Machines that templates of control planes have in v1beta1 if they have no other.
func fillMachineTemplate(o object) {
	if spec := lossless.At(o, "spec", "template", "spec"); spec != nil && spec["machineTemplate"] == nil {
		spec["machineTemplate"] = object{"metadata": object{}}
	}
}

// controlPlaneStatusUp converts the status of a control plane to v1beta2.
func controlPlaneStatusUp(status object) {
	if status == nil {
		return
	}
	delete(status, "ready")
	for _, name := range []string{"readyReplicas", "updatedReplicas", "unavailableReplicas"} {
		if status[name] == int64(0) {
			delete(status, name)
		}
		lossless.Move(status, path{name}, path{"deprecated", "v1beta1", name})
	}
	statusUp(status, "initialized", "controlPlaneInitialized")
	for _, name := range []string{"readyReplicas", "availableReplicas", "upToDateReplicas"} {
		lossless.Move(status, path{"v1beta2", name}, path{name})
	}
	if status["replicas"] == int64(0) && len(status) == 1 {
		delete(status, "replicas") // The status is empty, v1beta1 cannot tell that the number is unset.
	}
	lossless.Move(status, path{"lastRemediation", "timestamp"}, path{"lastRemediation", "time"})
}

// controlPlaneStatusDown converts the status of a control plane to v1beta1.
func controlPlaneStatusDown(status object) {
	if status == nil {
		return
	}
	for _, name := range []string{"readyReplicas", "availableReplicas", "upToDateReplicas"} {
		lossless.Move(status, path{name}, path{"v1beta2", name})
	}
	for _, name := range []string{"readyReplicas", "updatedReplicas", "unavailableReplicas"} {
		lossless.Move(status, path{"deprecated", "v1beta1", name}, path{name})
	}
	statusDown(status, "initialized", "controlPlaneInitialized")
	if ready, ok := status["readyReplicas"].(int64); ok && ready > 0 {
		status["ready"] = true
	}
	lossless.Move(status, path{"lastRemediation", "time"}, path{"lastRemediation", "timestamp"})
}
