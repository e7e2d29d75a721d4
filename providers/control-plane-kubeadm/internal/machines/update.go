package machines

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// update is a Machine with its objects, as they are in the API server and as they are desired.
type update struct {
	machine *snapshot.Machine
	// infrastructure and config are read from the API server; desired ones are copies of them, changed.
	infrastructure, desiredInfrastructure *unstructured.Unstructured
	config, desiredConfig                 *bootstrapv1.KubeadmConfig
	desiredMachine                        *clusterv1.Machine
}

// UpdateInPlace writes what is desired of a Machine, for the extension to carry it out, if the extension can. Otherwise nothing is written,
// and obstacles are the reasons, such as "KubeadmConfig spec.files". After an interruption, it is called again: the writes continue, also
// towards another spec. Each write requires that the object is as it was read.
func (mgr *Manager) UpdateInPlace(
	ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine, extensions inplace.Caller,
) (obstacles []string, err error) {
	registered, err := extensions.Handlers(ctx, runtimehooksv1.CanUpdateMachine, m)
	if err != nil || len(registered) == 0 {
		return []string{extension.ErrNoHandler.Error()}, err
	}
	u, err := mgr.desired(ctx, cp, m)
	if err != nil {
		return nil, fmt.Errorf("computing the update in place of Machine %s: %w", m.Name, err)
	}
	obstacles, err = mgr.dryRun(ctx, u)
	if err != nil || len(obstacles) > 0 {
		return obstacles, err
	}
	obstacles, err = u.ask(ctx, extensions)
	switch {
	case errors.Is(err, extension.ErrNoHandler):
		return []string{err.Error()}, nil
	case err != nil || len(obstacles) > 0:
		return obstacles, err
	}
	return nil, mgr.begin(ctx, u)
}

// desired computes the update.
func (mgr *Manager) desired(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine) (*update, error) {
	u := &update{machine: m, config: &bootstrapv1.KubeadmConfig{}, desiredMachine: m.Machine.DeepCopy()}
	live := external.Reader{Client: mgr.Live, Versions: mgr.External.Versions}
	var err error
	if u.infrastructure, err = live.Get(ctx, &m.Spec.InfrastructureRef, m.Namespace); err != nil {
		return nil, err
	}
	if err := mgr.Live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}, u.config); err != nil {
		return nil, err
	}
	template, err := mgr.clone(ctx, cp, u.infrastructure.GetName())
	if err != nil {
		return nil, err
	}
	if template.GroupVersionKind() != u.infrastructure.GroupVersionKind() {
		return nil, fmt.Errorf("the template is for a %s, but %s is a %s", template.GetKind(), u.infrastructure.GetName(),
			u.infrastructure.GetKind())
	}
	u.desiredInfrastructure = inplace.Overlaid(u.infrastructure, template, owned(u.infrastructure))
	if u.desiredConfig, err = desiredConfig(ctx, cp.KCP, u.config); err != nil {
		return nil, err
	}
	spec, err := snapshot.SpecOf(ctx, cp.KCP)
	if err != nil {
		return nil, err
	}
	u.desiredMachine.Spec.Version = cp.KCP.Spec.Version
	if u.desiredMachine.Annotations == nil {
		u.desiredMachine.Annotations = map[string]string{}
	}
	return u, spec.Record(u.desiredMachine.Annotations)
}

// desiredConfig returns a KubeadmConfig as the control plane wants it, with what the bootstrap provider has added.
func desiredConfig(
	ctx context.Context, kcp *controlplanev1.KubeadmControlPlane, is *bootstrapv1.KubeadmConfig,
) (*bootstrapv1.KubeadmConfig, error) {
	role := Join
	if kubeadm.Defined(is.Spec.ClusterConfiguration) || kubeadm.Defined(is.Spec.InitConfiguration) {
		role = Initialize
	}
	wanted, err := newConfig(ctx, kcp, role)
	if err != nil {
		return nil, err
	}
	out, spec := is.DeepCopy(), &wanted.Spec
	if !kubeadm.Defined(spec.JoinConfiguration.Discovery) {
		spec.JoinConfiguration.Discovery = is.Spec.JoinConfiguration.Discovery
	}
	if len(spec.InitConfiguration.BootstrapTokens) == 0 {
		spec.InitConfiguration.BootstrapTokens = is.Spec.InitConfiguration.BootstrapTokens
	}
	if spec.ClusterConfiguration.ControlPlaneEndpoint == "" {
		spec.ClusterConfiguration.ControlPlaneEndpoint = is.Spec.ClusterConfiguration.ControlPlaneEndpoint
	}
	out.Spec = *spec
	annotations := maps.Clone(out.Annotations)
	delete(annotations, conversion.OlderVersionAnnotation)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, wanted.Annotations)
	out.Annotations = annotations
	return out, nil
}

// dryRun asks the API server whether it accepts the changes; it also sets defaults. Obstacles are objects that must not change.
func (mgr *Manager) dryRun(ctx context.Context, u *update) (obstacles []string, err error) {
	for _, change := range []struct {
		from, to client.Object
		shown    func(error) error
	}{
		{u.infrastructure, u.desiredInfrastructure, func(err error) error { return err }},
		{u.config, u.desiredConfig, failsafe.Redacted}, // It may contain passwords.
	} {
		data, err := client.MergeFrom(change.from).Data(change.to)
		if err != nil {
			return nil, err
		}
		if string(data) == "{}" {
			continue
		}
		err = mgr.Client.Patch(ctx, change.to, apiversion.Merge(change.from, data), client.DryRunAll)
		switch {
		case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
			obstacles = append(obstacles, change.shown(err).Error())
		case err != nil:
			return nil, fmt.Errorf("checking the update in place of Machine %s: %w", u.machine.Name, change.shown(err))
		}
	}
	return obstacles, nil
}

// ask asks the extension whether it can make the changes.
func (u *update) ask(ctx context.Context, extensions inplace.Caller) ([]string, error) {
	current := inplace.Objects{Machine: u.machine.Machine, Infrastructure: u.infrastructure}
	wanted := inplace.Objects{Machine: u.desiredMachine, Infrastructure: u.desiredInfrastructure}
	var err error
	if current.Bootstrap, err = untyped(u.config); err != nil {
		return nil, err
	}
	if wanted.Bootstrap, err = untyped(u.desiredConfig); err != nil {
		return nil, err
	}
	return inplace.CanUpdate(ctx, extensions, current, wanted)
}

func untyped(config *bootstrapv1.KubeadmConfig) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	out := &unstructured.Unstructured{Object: object}
	out.SetGroupVersionKind(snapshot.ConfigKind())
	return out, err
}

// begin writes what is desired, in the order that package inplace documents.
func (mgr *Manager) begin(ctx context.Context, u *update) error {
	m := u.machine.Machine
	if err := mgr.write(ctx, m, func() { inplace.Mark(m) }); err != nil {
		return err
	}
	if err := mgr.write(ctx, u.infrastructure, func() {
		if spec, ok := u.desiredInfrastructure.Object["spec"]; ok {
			u.infrastructure.Object["spec"] = spec
		} else {
			delete(u.infrastructure.Object, "spec")
		}
		u.infrastructure.SetAnnotations(u.desiredInfrastructure.GetAnnotations())
		inplace.Mark(u.infrastructure)
	}); err != nil {
		return err
	}
	if err := mgr.write(ctx, u.config, func() {
		u.config.Spec, u.config.Annotations = u.desiredConfig.Spec, u.desiredConfig.Annotations
		inplace.Mark(u.config)
	}); err != nil {
		return err
	}
	if err := mgr.write(ctx, m, func() {
		m.Spec.Version = u.desiredMachine.Spec.Version
		maps.Copy(m.Annotations, u.desiredMachine.Annotations)
		inplace.MarkPending(m)
	}); err != nil {
		return err
	}
	step.Event(ctx, "SuccessfulStartInPlaceUpdate", "Machine %s is updated in place", m.Name)
	return nil
}

// Abandon ends the update of a Machine that cannot be completed. Its objects may be of a spec that it does not have, so that it records
// that it has to be replaced.
func (mgr *Manager) Abandon(ctx context.Context, m *snapshot.Machine) error {
	for _, obj := range m.CreatedFrom() {
		if err := mgr.write(ctx, obj, func() { inplace.Unmark(obj) }); err != nil {
			return err
		}
	}
	if err := mgr.write(ctx, m.Machine, func() {
		inplace.End(m.Machine)
		snapshot.RecordAbandoned(m.Machine)
	}); err != nil {
		return err
	}
	step.Event(ctx, "AbandonedInPlaceUpdate", "Machine %s cannot be updated in place any longer, and will be replaced", m.Name)
	return nil
}

// write applies a change to an object that is as it was read.
func (mgr *Manager) write(ctx context.Context, obj client.Object, change func()) error {
	if err := mgr.Patch(ctx, obj, change, step.IfUnchanged); err != nil {
		return fmt.Errorf("updating %s in place: %w", obj.GetName(), err)
	}
	return nil
}
