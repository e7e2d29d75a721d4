package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/sdk/reference"
)

// providerLabel has the provider's name on everything that it installs.
const providerLabel = "cluster.x-k8s.io/provider"

// paused finds the Cluster if it is paused, and otherwise paused objects.
func (v *view) paused() []Cause {
	if tree.True(v.cluster, "spec", "paused") {
		return []Cause{v.pausedCluster()}
	}
	var list []Cause
	for _, u := range v.tree {
		if _, ok := u.GetAnnotations()[clusterv1.PausedAnnotation]; !ok {
			if rolloutPaused(u) {
				list = append(list,
					v.cause(RolloutPaused, Blocked, u, readiness(u), fmt.Sprintf("spec.paused is true: its rollout stopped at %d of %d updated replicas",
						tree.Number(u, "status", "updatedReplicas"), tree.Number(u, "spec", "replicas"))).
						do(fmt.Sprintf("Resume it: `clusterctl alpha rollout resume machinedeployment/%s -n %s`", u.GetName(), u.GetNamespace())))
			}
			continue
		}
		list = append(list, v.cause(Paused, Blocked, u, nil,
			fmt.Sprintf("annotation %s pauses it: its controller does not reconcile it", clusterv1.PausedAnnotation)).
			do(fmt.Sprintf("Resume it: `kubectl annotate %s -n %s %s-`", resource(u), u.GetNamespace(), clusterv1.PausedAnnotation)))
	}
	return list
}

func (v *view) pausedCluster() Cause {
	if id := v.cluster.GetAnnotations()[transfer.MoveAnnotation]; id != "" {
		return v.cause(Paused, Blocked, v.cluster, nil,
			fmt.Sprintf("`clusterctl move` has paused the Cluster (move %s): no controller reconciles its objects here", id)).
			do("If the move no longer runs, repeat its command: it continues where it stopped; " +
				"with --cancel, it gives up unless it has started to remove objects")
	}
	if _, restored := v.cluster.GetAnnotations()[clusterv1.PausedByRestoreAnnotation]; restored {
		why := "a restore of the management cluster has paused the Cluster until its Machines match its Nodes"
		if c := tree.ConditionOf(v.cluster, string(clusterv1.BackupUpToDateV1Beta1Condition)); c != nil && c.Message != "" {
			why = c.Message
		}
		return v.cause(Paused, Blocked, v.cluster, nil, why).
			do(fmt.Sprintf("Compare Machines and Nodes with the machines that run, then resume it: "+
				"`kubectl patch cluster %s -n %s --type merge -p '{\"spec\":{\"paused\":false}}'`", v.Cluster.Name, v.Cluster.Namespace))
	}
	return v.cause(Paused, Blocked, v.cluster, nil, "the Cluster is paused: no controller reconciles its objects").
		do(fmt.Sprintf("Resume it, if nothing else depends on the pause, such as a backup: "+
			"`kubectl patch cluster %s -n %s --type merge -p '{\"spec\":{\"paused\":false}}'`",
			v.Cluster.Name, v.Cluster.Namespace))
}

// rolloutPaused reports whether a MachineDeployment is paused before all of its replicas are up to date.
func rolloutPaused(u *unstructured.Unstructured) bool {
	return u.GetKind() == tree.MachineDeploymentKind.Kind && tree.True(u, "spec", "paused") &&
		tree.Number(u, "status", "updatedReplicas") < tree.Number(u, "spec", "replicas")
}

// resource returns what kubectl calls an object, with its group, since kinds of several providers may have one name.
func resource(u *unstructured.Unstructured) string {
	gvk := u.GroupVersionKind()
	return strings.ToLower(gvk.Kind) + "." + gvk.Group + "/" + u.GetName()
}

// providers finds Deployments of the Cluster's providers that are not available: also of those whose objects are only referred to, because
// these cannot be created while the API server cannot call the webhooks of their provider.
func (v *view) providers() []Cause {
	if v.NoManagers && v.cluster != nil {
		return []Cause{v.cause(ProviderUnavailable, Blocked, v.cluster, nil,
			"no provider is installed in the management cluster, so nothing reconciles the Cluster: its status is what was reported last").
			do("Install the providers again: `clusterctl init`, with the flags of the first time")}
	}
	used := map[string]bool{}
	for _, u := range v.tree {
		used[v.ProviderOf[u.GroupVersionKind().GroupKind()]] = true
	}
	for _, r := range tree.References(v.Cluster, v.Objects) {
		used[v.ProviderOf[r.Kind.GroupKind()]] = true
	}
	var list []Cause
	for i := range v.Providers {
		d := &v.Providers[i]
		if !used[d.Labels[providerLabel]] || d.Status.AvailableReplicas > 0 {
			continue
		}
		list = append(list, v.unavailable(d))
	}
	return list
}

func (v *view) unavailable(d *appsv1.Deployment) Cause {
	action := fmt.Sprintf("See why its Pods do not run: `kubectl describe pods -n %s -l %s=%s`",
		d.Namespace, providerLabel, d.Labels[providerLabel])
	message := fmt.Sprintf("no Pod of provider %s is available, so nothing reconciles its kinds", d.Labels[providerLabel])
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		message = fmt.Sprintf("provider %s is scaled to 0 replicas, so nothing reconciles its kinds", d.Labels[providerLabel])
		action = fmt.Sprintf("Scale it up: `kubectl scale deployment %s -n %s --replicas 1`", d.Name, d.Namespace)
	}
	c := Cause{
		Reason: ProviderUnavailable, State: Blocked,
		Object: Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name},
	}
	if v.cluster != nil {
		c.Chain = v.chain(v.cluster)
	}
	c.Chain = append(c.Chain, Link{Object: c.Object, State: fmt.Sprintf("%d replicas available", d.Status.AvailableReplicas)})
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionFalse {
			c = c.from(&condition.LastTransitionTime)
			message = apply.Explanation(message, condition.Message)
		}
	}
	if problem := v.podProblem(d); problem != "" {
		message += ": " + problem
	}
	c.Message = message
	return c.do(action)
}

// podProblem returns why a container of a Deployment's Pods does not run.
func (v *view) podProblem(d *appsv1.Deployment) string {
	for i := range v.Pods {
		p := &v.Pods[i]
		if p.Namespace != d.Namespace || p.Labels[providerLabel] != d.Labels[providerLabel] {
			continue
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if w := s.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return apply.Explanation(fmt.Sprintf("container %s of Pod %s with image %s", s.Name, p.Name, s.Image),
					strings.TrimSpace(w.Reason+" "+w.Message))
			}
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return apply.Explanation(fmt.Sprintf("Pod %s cannot be scheduled", p.Name), cmp.Or(condition.Message, condition.Reason))
			}
		}
		if problem := apply.NotCreated(p, v.PodEvents); problem != "" {
			return problem
		}
	}
	return ""
}

// missing finds references to objects that do not exist, and to kinds that are not installed.
func (v *view) missing() []Cause {
	var list []Cause
	if key, path := v.class(); key.Name != "" && v.ClassRead {
		if v.Objects.Get(ClassKind.GroupKind(), key) == nil {
			list = append(list, v.cause(MissingObject, Blocked, v.cluster, failing(v.cluster, clusterv1.TopologyReconciledV1Beta1Condition),
				fmt.Sprintf("%s: ClusterClass %s does not exist in namespace %s", path, key.Name, key.Namespace)).
				do(fmt.Sprintf("Create ClusterClass %s, or set %s to one of `kubectl get clusterclasses -n %s`", key.Name, path, key.Namespace)))
		}
	}
	for _, r := range tree.References(v.Cluster, v.Objects) {
		kind := r.Kind.GroupKind()
		if r.From.GetDeletionTimestamp() != nil || v.Objects.Get(kind, r.Name) != nil {
			continue
		}
		where := fmt.Sprintf("%s: %s %s", r.Path, r.Kind.Kind, r.Name.Name)
		switch {
		case v.NoKind[kind]:
			list = append(list, v.cause(MissingKind, Blocked, r.From, nil, where+fmt.Sprintf(" has a kind that is not installed (%s)", kind)).
				do(installProvider))
		case v.age(r.From) > grace:
			list = append(list, v.cause(MissingObject, Blocked, r.From, readiness(r.From), where+" does not exist").
				do(fmt.Sprintf("Create it again, or replace the reference in %s", objectOf(r.From))))
		}
	}
	return list
}

// references finds conditions about references that a controller cannot follow.
func (v *view) references() []Cause {
	var objects []*unstructured.Unstructured
	if v.cluster != nil {
		objects = append(objects, v.cluster)
	}
	var list []Cause
	for _, u := range slices.Concat(objects, v.machines, v.Objects.Of(tree.MachinePoolKind, v.Cluster)) {
		for _, of := range followed(u) {
			if c := v.failedReference(u, of); c != nil {
				list = append(list, v.cause(ReferenceFailed, Blocked, u, c, c.Message).do(remedyOf(u, c.Reason)))
			}
		}
	}
	return list
}

// follower is the condition of an object about one of its references.
type follower struct {
	condition clusterv1.ConditionType
	path      []string
}

func followed(u *unstructured.Unstructured) []follower {
	machine := []string{"spec"}
	switch u.GetKind() {
	case tree.ClusterKind.Kind:
		return []follower{
			{clusterv1.InfrastructureReadyV1Beta1Condition, []string{"spec", "infrastructureRef"}},
			{clusterv1.ControlPlaneReadyV1Beta1Condition, []string{"spec", "controlPlaneRef"}},
		}
	case tree.MachinePoolKind.Kind:
		machine = []string{"spec", "template", "spec"}
	}
	return []follower{
		{clusterv1.InfrastructureReadyV1Beta1Condition, append(slices.Clip(machine), "infrastructureRef")},
		{clusterv1.BootstrapReadyV1Beta1Condition, append(slices.Clip(machine), "bootstrap", "configRef")},
	}
}

// failedReference returns the condition if the reference cannot be followed. A condition that mirrors one of the object is that of its
// provider.
func (v *view) failedReference(u *unstructured.Unstructured, of follower) *tree.Condition {
	c := failing(u, of.condition)
	if c == nil || remedyOf(u, c.Reason) == "" {
		return nil
	}
	if obj := v.resolve(u, of.path...); obj != nil {
		if own := readiness(obj); own != nil && own.Reason == c.Reason && own.Message == c.Message {
			return nil
		}
	}
	return c
}

// installProvider is what to do about a kind that does not exist.
const installProvider = "Install its provider with `clusterctl init`, or `clusterctl operator init` where the operator manages " +
	"providers; see `clusterctl config repositories` for the known providers"

// remedyOf returns what to do about a condition with a reason of package reference; empty for other reasons.
func remedyOf(u *unstructured.Unstructured, reason string) string {
	switch reason {
	case reference.ReferenceInvalidReason:
		return "Let the reference name an object of its own, or correct the object"
	case reference.ContractViolatedReason:
		return fmt.Sprintf("The provider of the object has to correct what the message names: see `kubectl describe %s -n %s`",
			resource(u), u.GetNamespace())
	case reference.KindNotInstalledReason:
		return installProvider
	case reference.AccessDeniedReason:
		return "Grant the manager the permission, with a ClusterRole that has the label cluster.x-k8s.io/aggregate-to-manager=true; " +
			"if an admission webhook denied it, see that webhook"
	}
	return ""
}

// readiness returns the condition Ready if it is not True.
func readiness(u *unstructured.Unstructured) *tree.Condition {
	return failing(u, clusterv1.ReadyV1Beta1Condition)
}

// class returns the ClusterClass of the Cluster, and the field that names it. Both are empty if it has none.
func (v *view) class() (class types.NamespacedName, path string) {
	if v.cluster == nil {
		return class, ""
	}
	class, fields := tree.Class(v.cluster)
	return class, strings.Join(fields, ".")
}

// topology finds why the class is not applied, and hooks that block.
func (v *view) topology() []Cause {
	var list []Cause
	key, _ := v.class()
	if class := v.Objects.Get(ClassKind.GroupKind(), key); class != nil {
		for _, t := range []clusterv1.ConditionType{
			clusterv1.ClusterClassVariablesReconciledV1Beta1Condition, clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition,
		} {
			c := failing(class, t)
			if !severe(c) || c.Reason == clusterv1.ClusterClassOutdatedRefVersionsV1Beta1Reason {
				continue
			}
			if failed, ok := v.extension(class, c); ok {
				list = append(list, failed)
			} else {
				list = append(list, v.cause(ClassInvalid, Blocked, class, c, c.Message).
					do(fmt.Sprintf("Correct the class: `kubectl describe clusterclass %s -n %s`", key.Name, key.Namespace)))
			}
		}
	}
	c := failing(v.cluster, clusterv1.TopologyReconciledV1Beta1Condition)
	if c == nil {
		return list
	}
	switch c.Reason {
	case clusterv1.TopologyReconcileFailedV1Beta1Reason:
		if failed, ok := v.extension(v.cluster, c); ok {
			list = append(list, failed)
			break
		}
		list = append(list, v.cause(TopologyFailed, Blocked, v.cluster, c, c.Message).
			do(fmt.Sprintf("Correct what the message names in ClusterClass %s, its templates or spec.topology of the Cluster; "+
				"it is retried by itself", key.Name)))
	case clusterv1.TopologyReconciledClusterClassNotReconciledV1Beta1Reason:
		list = append(list, v.cause(ClassNotReconciled, Blocked, v.cluster, c, c.Message).
			do(fmt.Sprintf("Correct what the message names; otherwise the class is being reconciled: see `kubectl describe clusterclass %s -n %s`",
				key.Name, key.Namespace)))
	case clusterv1.DeletedV1Beta1Reason, clusterv1.TopologyReconciledHookBlockingV1Beta1Reason:
		if c.Message == "" {
			break // It is being deleted, and nothing blocks that.
		}
		list = append(list, v.cause(LifecycleHook, Blocked, v.cluster, c, c.Message).
			do("The runtime extension decides when to go on: see the log of its server: `"+extensionConfigs(c.Message)+"` shows its address"))
	}
	return list
}

// extensionConfigs returns a command that shows the ExtensionConfigs of the extensions that a message names at its end or before a
// semicolon, "(extension handler.config, ...)", or all ExtensionConfigs.
func extensionConfigs(message string) string {
	const command = "kubectl get extensionconfigs"
	var names []string
	for part := range strings.SplitSeq(message, "; ") {
		_, list, found := cutLast(strings.TrimSuffix(part, ")"), "(extension ")
		if !found || !strings.HasSuffix(part, ")") {
			continue
		}
		for extension := range strings.SplitSeq(list, ", ") {
			if _, config, ok := strings.Cut(extension, "."); ok && !slices.Contains(names, config) {
				names = append(names, config)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(append([]string{command}, append(names, "-o yaml")...), " ")
}

// cutLast cuts a text around the last occurrence of a separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// finalizers finds objects whose deletion waits for finalizers of programs other than Cluster API's providers.
func (v *view) finalizers() []Cause {
	var list []Cause
	for _, u := range v.tree {
		if u.GetDeletionTimestamp() == nil {
			continue
		}
		var foreign []string
		for _, f := range u.GetFinalizers() {
			if !ours(f, u.GroupVersionKind().Group) {
				foreign = append(foreign, f)
			}
		}
		if len(foreign) == 0 {
			continue
		}
		list = append(list, v.cause(ForeignFinalizer, Blocked, u, nil,
			fmt.Sprintf("its deletion waits for the program that removes finalizer %s", strings.Join(foreign, ", "))).
			from(u.GetDeletionTimestamp()).
			do(fmt.Sprintf("Find the program that sets %s, and see why it does not remove it", strings.Join(foreign, ", ")),
				fmt.Sprintf("Only if that program no longer exists, remove the finalizer: `kubectl edit %s -n %s`", resource(u), u.GetNamespace())))
	}
	return list
}

// ours reports whether a finalizer is one of Cluster API, of the provider of a kind, or of the API server.
func ours(finalizer, group string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	return domain == clusterv1.GroupVersion.Group || strings.HasSuffix(domain, "."+clusterv1.GroupVersion.Group) ||
		domain == group || strings.HasSuffix(domain, "."+group) || strings.HasSuffix(group, "."+domain) ||
		finalizer == "foregroundDeletion" || finalizer == "orphan"
}

// failures finds terminal failures: no controller leaves them.
func (v *view) failures() []Cause {
	var list []Cause
	objects := []*unstructured.Unstructured{v.cluster, v.controlPlane()}
	for _, kind := range []schema.GroupVersionKind{tree.MachineSetKind, tree.MachinePoolKind} {
		objects = append(objects, v.Objects.Of(kind, v.Cluster)...)
	}
	for _, u := range append(objects, v.machines...) {
		reason, message := tree.Text(u, "status", "failureReason"), tree.Text(u, "status", "failureMessage")
		if reason == "" && message == "" || u.GetDeletionTimestamp() != nil {
			continue
		}
		c := v.cause(Failed, Blocked, u, readiness(u), "failed permanently: "+strings.TrimPrefix(reason+": "+message, ": "))
		switch {
		case u.GetKind() != tree.MachineKind.Kind:
			c = c.do("Correct the cause, then remove status.failureReason and status.failureMessage")
		case v.parents[u] != nil:
			c = c.do(fmt.Sprintf("Let it be replaced: `kubectl delete machine %s -n %s`, or have a MachineHealthCheck do it",
				u.GetName(), u.GetNamespace()))
		default:
			c = c.do("It has no owner that replaces it: delete it and create another one")
		}
		list = append(list, c)
	}
	return list
}

// infrastructure finds why the infrastructure of the Cluster is not ready.
func (v *view) infrastructure() []Cause {
	u := v.resolve(v.cluster, "spec", "infrastructureRef")
	if tree.Text(v.cluster, "spec", "infrastructureRef", "name") == "" {
		return v.endpointOfUser()
	}
	if u == nil || tree.True(v.cluster, "status", "infrastructureReady") && readiness(u) == nil ||
		v.failedReference(v.cluster, followed(v.cluster)[0]) != nil {
		return nil
	}
	c := readiness(u)
	state := Progressing
	if severe(c) {
		state = Blocked
	}
	if manager, ok := u.GetAnnotations()[clusterv1.ManagedByAnnotation]; ok && !tree.True(u, "status", "ready") {
		by := "another program"
		if manager != "" {
			by = fmt.Sprintf("%q", manager)
		}
		return []Cause{v.cause(ExternallyManaged, Blocked, u, c,
			fmt.Sprintf("%s manages this infrastructure (annotation %s), and has not reported that it is ready", by, clusterv1.ManagedByAnnotation)).
			do("The program sets spec.controlPlaneEndpoint, and then status.ready: see its log")}
	}
	if c == nil && tree.True(u, "status", "ready") {
		return nil // The Cluster has not been reconciled since.
	}
	if c == nil && v.age(u) < grace {
		return []Cause{v.cause(InfrastructureProvisioning, Progressing, u, nil, "the infrastructure of the cluster is being provisioned")}
	}
	message := "no controller reports on the infrastructure of the cluster: it has no condition, and status.ready is not true"
	if c != nil {
		message = why(c)
	} else {
		state = Blocked
		message += v.withoutDeployment(u)
	}
	return []Cause{v.cause(InfrastructureNotReady, state, u, c, message).
		do(fmt.Sprintf("See `kubectl describe %s -n %s`, and the log of provider %s", resource(u), u.GetNamespace(), v.provider(u)))}
}

// endpointOfUser finds a Cluster whose endpoint only its user can set: it has no infrastructure, and its control plane runs on Machines.
func (v *view) endpointOfUser() []Cause {
	plane := v.resolve(v.cluster, "spec", "controlPlaneRef")
	if plane == nil || tree.Text(v.cluster, "spec", "topology", "class") != "" ||
		tree.Text(v.cluster, "spec", "controlPlaneEndpoint", "host") != "" {
		return nil
	}
	if _, machines, _ := unstructured.NestedFieldNoCopy(plane.Object, "spec", "machineTemplate"); !machines {
		return nil
	}
	return []Cause{v.cause(InfrastructureNotReady, Blocked, v.cluster, readiness(v.cluster),
		"spec.controlPlaneEndpoint is not set, and without spec.infrastructureRef no controller sets it").
		do("Set spec.controlPlaneEndpoint of the Cluster to the host and port of its API server")}
}

// withoutDeployment returns ": provider x has no Deployment" if that is why no controller reconciles an object.
func (v *view) withoutDeployment(u *unstructured.Unstructured) string {
	name := v.ProviderOf[u.GroupVersionKind().GroupKind()]
	if name == "" || len(v.Providers) == 0 ||
		slices.ContainsFunc(v.Providers, func(d appsv1.Deployment) bool { return d.Labels[providerLabel] == name }) {
		return ""
	}
	return fmt.Sprintf(": provider %s has no Deployment", name)
}

// provider returns the provider of an object's kind, for messages.
func (v *view) provider(u *unstructured.Unstructured) string {
	gk := u.GroupVersionKind().GroupKind()
	if p := v.ProviderOf[gk]; p != "" {
		return p
	}
	return gk.Group
}
