package webhook

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// ValidateCreate implements Validator.
func (w *Cluster) ValidateCreate(ctx context.Context, cluster *clusterv1.Cluster) (admission.Warnings, error) {
	return w.validate(ctx, nil, cluster)
}

// ValidateUpdate implements Validator.
func (w *Cluster) ValidateUpdate(ctx context.Context, old, cluster *clusterv1.Cluster) (admission.Warnings, error) {
	return w.validate(ctx, old, cluster)
}

// ValidateDelete implements Validator: a Cluster can always be deleted.
func (w *Cluster) ValidateDelete(context.Context, *clusterv1.Cluster) (admission.Warnings, error) {
	return nil, nil
}

func (w *Cluster) validate(ctx context.Context, old, cluster *clusterv1.Cluster) (admission.Warnings, error) {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	for _, problem := range validation.IsValidLabelValue(cluster.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), cluster.Name, "must be a valid label value: "+problem))
	}
	network, at := &cluster.Spec.ClusterNetwork, spec.Child("clusterNetwork")
	errs = append(errs, validateRanges(network.Services, at.Child("services"))...)
	errs = append(errs, validateRanges(network.Pods, at.Child("pods"))...)
	errs = append(errs, webhooks.WithoutOld(clusterNumbers(old), clusterNumbers(cluster))...)
	warnings, topologyErrs, err := w.topology(ctx, old, cluster, spec.Child("topology"))
	if err != nil {
		return warnings, apierrors.NewInternalError(err)
	}
	return warnings, invalid("Cluster", cluster.Name, append(errs, topologyErrs...))
}

func validateRanges(r clusterv1.NetworkRanges, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, block := range r.CIDRBlocks {
		if _, err := netip.ParsePrefix(block); err != nil {
			errs = append(errs,
				field.Invalid(path.Child("cidrBlocks").Index(i), block, "must be a range of IP addresses in CIDR notation, such as 10.0.0.0/16"))
		}
	}
	return errs
}

// topology validates the topology of a Cluster. It returns an error only if reading fails.
func (w *Cluster) topology(
	ctx context.Context, old, cluster *clusterv1.Cluster, path *field.Path,
) (admission.Warnings, field.ErrorList, error) {
	topology := &cluster.Spec.Topology
	if !topology.IsDefined() {
		if old != nil && old.Spec.Topology.IsDefined() {
			return nil, field.ErrorList{field.Forbidden(path, "the topology of a Cluster cannot be removed")}, nil
		}
		return nil, nil, nil
	}
	if !w.options.ClusterTopology {
		return nil, field.ErrorList{field.Forbidden(path, "a topology requires the feature gate ClusterTopology")}, nil
	}
	errs := validateConcurrency(cluster)
	if !cluster.DeletionTimestamp.IsZero() {
		return nil, errs, nil
	}
	if old != nil && equality.Semantic.DeepEqual(&old.Spec.Topology, topology) {
		unchanged, err := w.unchanged(ctx, cluster, path)
		return nil, append(errs, unchanged...), err
	}
	if topology.ClassRef.Name == "" {
		return nil, append(errs, field.Required(path.Child("classRef", "name"), "the name of a ClusterClass is required")), nil
	}
	errs = append(errs, check.Version(topology.Version, path.Child("version"))...)
	errs = append(errs, check.Topology(topology, path)...)
	errs = append(errs, checkTaints(w.options.MachineTaintPropagation, topologyTaints(old), topologyTaints(cluster))...)
	errs = append(errs, checkPinned(w.options.ClusterTopologyWorkerVersionPinning, old, topology, path)...)

	class, warnings, classErrs, err := w.againstClass(ctx, old, cluster, path)
	if err != nil {
		return nil, nil, err
	}
	errs = append(errs, classErrs...)
	if len(errs) > 0 {
		return warnings, errs, nil
	}
	pinnedWarnings, errs, err := w.pinned(ctx, old, cluster, class, path)
	if err != nil || len(errs) > 0 {
		return warnings, errs, err
	}
	changeWarnings, errs, err := w.change(ctx, old, cluster, class, path)
	return slices.Concat(warnings, pinnedWarnings, changeWarnings), errs, err
}

// unchanged validates an unchanged topology, because its class may have changed. If the class does not exist or is not
// reconciled, other fields of the Cluster can still be written.
func (w *Cluster) unchanged(ctx context.Context, cluster *clusterv1.Cluster, path *field.Path) (field.ErrorList, error) {
	found, err := w.class(ctx, cluster.GetClassKey())
	if found.class == nil || err != nil {
		return nil, err
	}
	if _, err := w.compiled(found.class); err != nil {
		return nil, nil // the topology controller reports why the class is unusable
	}
	return w.byClass(ctx, nil, cluster, found.class, path)
}

// byClass validates a topology against its class only. old is nil unless the variables may have changed.
func (w *Cluster) byClass(
	ctx context.Context, old, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, path *field.Path,
) (field.ErrorList, error) {
	errs := check.TopologyOf(&cluster.Spec.Topology, class, path)
	definitions, err := w.definitionsFor(ctx, cluster, class)
	if err != nil {
		return nil, err
	}
	// The class may have been reconciled after Default gave up waiting for it. The topology controller sets the defaults then.
	defaulted := cluster.Spec.Topology.DeepCopy()
	if invalid := definitions.Default(defaulted, path); len(invalid) > 0 {
		return append(errs, invalid...), nil
	}
	previous, err := variables.ReadPrevious(ctx, old)
	return append(errs, definitions.ValidateUpdate(ctx, defaulted, previous, path)...), err
}

// validateConcurrency validates the annotation for the number of concurrent worker upgrades.
func validateConcurrency(cluster *clusterv1.Cluster) field.ErrorList {
	name := clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation
	value, set := cluster.Annotations[name]
	if !set {
		return nil
	}
	if n, err := strconv.Atoi(value); err != nil || n < 1 {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(name), value, "must be an integer of at least 1")}
	}
	return nil
}

// againstClass validates a topology against its class. A new Cluster may be created before its class; an existing one must not
// be changed to a class that does not exist. The class is nil if it is not ready.
func (w *Cluster) againstClass(
	ctx context.Context, old, cluster *clusterv1.Cluster, path *field.Path,
) (*clusterv1.ClusterClass, admission.Warnings, field.ErrorList, error) {
	key := cluster.GetClassKey()
	found, err := w.waitForClass(ctx, key)
	if err != nil {
		return nil, nil, nil, err
	}
	if found.missing && old != nil {
		return nil, nil, field.ErrorList{field.Invalid(path.Child("classRef", "name"), key.Name, fmt.Sprintf(
			"the ClusterClass does not exist in namespace %q: create it first", key.Namespace))}, nil
	}
	if found.class == nil {
		return nil, admission.Warnings{fmt.Sprintf(
			"The topology of Cluster %s/%s could not be validated against its ClusterClass and will not be reconciled until it can be: %v",
			cluster.Namespace, cluster.Name, found.reason)}, nil, nil
	}
	errs, err := w.byClass(ctx, old, cluster, found.class, path)
	if err != nil {
		return nil, nil, nil, err
	}
	var before field.ErrorList
	if old != nil {
		before = check.Autoscaling(&old.Spec.Topology, found.class, path)
	}
	errs = append(errs, webhooks.WithoutOld(before, check.Autoscaling(&cluster.Spec.Topology, found.class, path))...)
	if old == nil || !old.Spec.Topology.IsDefined() || old.GetClassKey() == key {
		return found.class, nil, errs, nil
	}
	rebase, err := w.rebase(ctx, old, found.class, path.Child("classRef", "name"))
	return found.class, nil, append(errs, rebase...), err
}

// rebase validates a change to another class.
func (w *Cluster) rebase(
	ctx context.Context, old *clusterv1.Cluster, class *clusterv1.ClusterClass, path *field.Path,
) (field.ErrorList, error) {
	is, was := client.ObjectKeyFromObject(class), old.GetClassKey()
	from, err := w.class(ctx, was)
	if err != nil {
		return nil, err
	}
	if from.class == nil {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
			"the change to ClusterClass %q cannot be validated without the current ClusterClass %q: %v",
			displayed(is, was), displayed(was, is), from.reason))}, nil
	}
	var errs field.ErrorList
	for _, difference := range check.CompatibleClasses(from.class, class) {
		errs = append(errs, field.Invalid(path, is.Name, fmt.Sprintf(
			"not compatible with the current ClusterClass %q: %s: %s", displayed(was, is), difference.Field, difference.Detail)))
	}
	return errs, nil
}

// displayed returns the name of a class, with its namespace if the other class is in another one.
func displayed(class, other client.ObjectKey) string {
	if class.Namespace == other.Namespace {
		return class.Name
	}
	return class.String()
}

// change validates a change of the topology against the old one, and a version that the class must list. The class is nil if it is not
// ready.
func (w *Cluster) change(
	ctx context.Context, old, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, path *field.Path,
) (admission.Warnings, field.ErrorList, error) {
	at := path.Child("version")
	if old == nil {
		warnings, errs := unlessUnsafe(cluster, listedVersion(cluster, class, at))
		return warnings, errs, nil
	}
	if !old.Spec.Topology.IsDefined() {
		name := clusterv1.ClusterTopologyUnsafeUpdateClassNameAnnotation
		if _, allowed := cluster.Annotations[name]; allowed {
			return nil, nil, nil
		}
		return nil, field.ErrorList{field.Forbidden(path.Child("classRef", "name"), fmt.Sprintf(
			"a class cannot be added to an existing Cluster; if you know the consequences for its objects, set annotation %s", name))}, nil
	}
	if old.Spec.Topology.Version == cluster.Spec.Topology.Version {
		if old.GetClassKey() == cluster.GetClassKey() {
			return nil, nil, nil
		}
		warnings, errs := unlessUnsafe(cluster, listedVersion(cluster, class, at))
		return warnings, errs, nil
	}
	errs, err := w.versionChange(ctx, old, cluster, class, at)
	if err != nil {
		return nil, nil, err
	}
	warnings, errs := unlessUnsafe(cluster, errs)
	if len(errs) > 0 {
		return nil, w.wayBack(ctx, cluster, old.Spec.Topology.Version, errs), nil
	}
	return append(warnings, w.frozenRegistry(ctx, cluster)...), nil, nil
}

// unlessUnsafe makes errors of a version warnings, if the annotation for that is set.
func unlessUnsafe(cluster *clusterv1.Cluster, errs field.ErrorList) (admission.Warnings, field.ErrorList) {
	if !isUnsafe(cluster) {
		return nil, errs
	}
	var warnings admission.Warnings
	for _, e := range errs {
		warnings = append(warnings, fmt.Sprintf("Accepted because annotation %s is set: %s",
			clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation, e.Error()))
	}
	return warnings, nil
}

func isUnsafe(cluster *clusterv1.Cluster) bool {
	_, unsafe := cluster.Annotations[clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation]
	return unsafe
}

func listedVersion(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, path *field.Path) field.ErrorList {
	if class == nil {
		return nil
	}
	return check.Listed(cluster.Spec.Topology.Version, class, path)
}

// versionChange validates a change of version: which versions, and whether the previous upgrade is complete.
func (w *Cluster) versionChange(
	ctx context.Context, old, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, path *field.Path,
) (field.ErrorList, error) {
	was, is := old.Spec.Topology.Version, cluster.Spec.Topology.Version
	errs := check.Upgrade(was, is, class != nil && check.IsChained(class), path)
	if len(errs) == 0 {
		errs = listedVersion(cluster, class, path)
	}
	// As in v1.7, another patch version may be chosen at any time, also to mend an upgrade that cannot end.
	if len(errs) > 0 || check.SameMinor(was, is) {
		return errs, nil
	}
	reasons, err := w.notAtVersion(ctx, cluster, was)
	if err != nil && isUnsafe(cluster) {
		reasons, err = []string{err.Error()}, nil
	}
	if err != nil || len(reasons) == 0 {
		return nil, err
	}
	return field.ErrorList{field.Invalid(path, is, fmt.Sprintf(
		"all parts of the Cluster must have version %s before the upgrade: %s", was, strings.Join(reasons, ", ")))}, nil
}
