package explain

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// certificates finds why the control plane cannot create Machines.
func (v *view) certificates() []Cause {
	plane := v.controlPlane()
	if plane == nil || plane.GetDeletionTimestamp() != nil {
		return nil
	}
	var list []Cause
	if c := failing(plane, controlplanev1.CertificatesAvailableV1Beta1Condition); c != nil {
		list = append(list, v.cause(CertificatesUnavailable, Blocked, plane, c, c.Message).
			do(fmt.Sprintf("Create or correct the Secret: the Secrets of the cluster are `kubectl get secrets -n %s -l %s=%s`",
				v.Cluster.Namespace, clusterv1.ClusterNameLabel, v.Cluster.Name)))
	}
	list = append(list, v.expired()...)
	if c := failing(plane, controlplanev1.MachinesCreatedV1Beta1Condition); severe(c) {
		list = append(list, v.cause(MachinesNotCreated, Blocked, plane, c, c.Message).
			do(fmt.Sprintf("Correct what the message names; it is retried by itself. See `kubectl describe %s -n %s`",
				resource(plane), v.Cluster.Namespace)))
	}
	return list
}

// expired finds control plane Machines with expired certificates.
func (v *view) expired() []Cause {
	var list []Cause
	for _, m := range v.machines {
		expiry := v.expiryOf(m)
		if expiry.IsZero() || expiry.After(v.Now) {
			continue
		}
		list = append(list, v.cause(CertificatesExpired, Blocked, m, nil,
			"the certificates of its control plane components have expired").from(&metav1.Time{Time: expiry}).
			do("On the machine, run `kubeadm certs renew all` and restart the control plane components",
				"To have Machines replaced before that, set spec.rolloutBefore.certificatesExpiryDays of the control plane"))
	}
	return list
}

// addresses finds claims of the Cluster's machines that have no address.
func (v *view) addresses() []Cause {
	var list []Cause
	for _, u := range v.tree {
		if u.GetKind() != ClaimKind.Kind || tree.Text(u, "status", "addressRef", "name") != "" || u.GetDeletionTimestamp() != nil {
			continue
		}
		pool := tree.Text(u, "spec", "poolRef", "kind") + " " + tree.Text(u, "spec", "poolRef", "name")
		c := readiness(u)
		message, state := "waits for an address of "+pool, Progressing
		if c != nil {
			message += ": " + why(c)
			state = Blocked
		} else if v.age(u) > grace {
			message += ", and no IPAM provider has reported on it"
			state = Blocked
		}
		list = append(list, v.cause(AddressNotAllocated, state, u, c, message).
			do(fmt.Sprintf("See `kubectl describe %s -n %s`; add addresses to the pool, or delete claims that are not needed",
				strings.ToLower(tree.Text(u, "spec", "poolRef", "kind"))+"/"+tree.Text(u, "spec", "poolRef", "name"), u.GetNamespace())))
	}
	return list
}

// failedMachines finds machines of the control plane that have failed after they joined: the API server may not respond because of them.
func (v *view) failedMachines() []Cause {
	return v.failed(func(m *unstructured.Unstructured) bool { return isControlPlane(m) && !joins(m) })
}

// failedJoins finds the other machines whose infrastructure or bootstrap data cannot be provisioned, maybe because the API server does not
// respond.
func (v *view) failedJoins() []Cause {
	return v.failed(func(m *unstructured.Unstructured) bool { return !isControlPlane(m) || joins(m) })
}

func (v *view) failed(which func(*unstructured.Unstructured) bool) []Cause {
	var list []Cause
	for _, m := range slices.Concat(v.machines, v.Objects.Of(tree.MachinePoolKind, v.Cluster)) {
		if !which(m) || m.GetDeletionTimestamp() != nil || tree.Text(m, "status", "failureReason") != "" ||
			tree.Text(m, "status", "failureMessage") != "" {
			continue
		}
		infrastructure, bootstrap := v.infrastructureOf(m), v.bootstrapOf(m)
		if m.GetKind() == tree.MachinePoolKind.Kind {
			infrastructure = v.resolve(m, "spec", "template", "spec", "infrastructureRef")
			bootstrap = v.resolve(m, "spec", "template", "spec", "bootstrap", "configRef")
			if c := readiness(infrastructure); c != nil && c.Severity != "Error" {
				infrastructure = nil // It is scaled, or rolled out.
			}
		}
		if c := readiness(bootstrap); severe(c) {
			list = append(list, v.cause(BootstrapFailed, Blocked, bootstrap, c, "the bootstrap data cannot be generated: "+why(c)).
				do(fmt.Sprintf("See `kubectl describe %s -n %s`", resource(bootstrap), bootstrap.GetNamespace())))
		}
		if c := readiness(infrastructure); severe(c) {
			list = append(list, v.cause(MachineInfrastructureFailed, Blocked, infrastructure, c, why(c)).
				do(fmt.Sprintf("See `kubectl describe %s -n %s`, and the log of provider %s",
					resource(infrastructure), infrastructure.GetNamespace(), v.provider(infrastructure))))
		}
	}
	return list
}

// hostedControlPlane finds why a control plane without Machines is not ready. That of others is known from their Machines.
func (v *view) hostedControlPlane() []Cause {
	plane := v.controlPlane()
	if plane == nil || plane.GetDeletionTimestamp() != nil || isKubeadm(plane) || slices.ContainsFunc(v.machines, isControlPlane) {
		return nil
	}
	c, see := readiness(plane), fmt.Sprintf("See `kubectl describe %s -n %s`, and the log of provider %s",
		resource(plane), plane.GetNamespace(), v.provider(plane))
	switch {
	case severe(c):
		return []Cause{v.cause(ControlPlaneNotReady, Blocked, plane, c, why(c)).do(see)}
	case tree.True(plane, "status", "ready"):
		return nil
	case c == nil && v.age(plane) > grace && !tree.True(plane, "status", "initialized"):
		return []Cause{v.cause(ControlPlaneNotReady, Blocked, plane, nil,
			"no controller reports on the control plane: it has no condition, and status.ready is not true"+v.withoutDeployment(plane)).do(see)}
	}
	message := "the control plane is being provisioned"
	if c != nil {
		message += ": " + why(c)
	}
	return []Cause{v.cause(ControlPlaneProvisioning, Progressing, plane, c, message)}
}

func isKubeadm(plane *unstructured.Unstructured) bool {
	return plane.GroupVersionKind().GroupKind() == controlplanev1.GroupVersion.WithKind("KubeadmControlPlane").GroupKind()
}

// connection finds a workload cluster that the managers cannot reach.
func (v *view) connection() []Cause {
	if v.cluster == nil || failing(v.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) != nil {
		return nil
	}
	c := v.unreachable()
	if c == nil {
		return nil
	}
	endpoint := fmt.Sprintf("%s:%d", tree.Text(v.cluster, "spec", "controlPlaneEndpoint", "host"),
		tree.Number(v.cluster, "spec", "controlPlaneEndpoint", "port"))
	return []Cause{v.cause(WorkloadClusterUnreachable, Blocked, v.cluster, c,
		fmt.Sprintf("the API server of the workload cluster at %s does not respond to the managers: %s", endpoint, text(c))).
		do(fmt.Sprintf("Check that it responds: `clusterctl get kubeconfig %[1]s -n %[2]s > %[1]s.kubeconfig && kubectl "+
			"--kubeconfig %[1]s.kubeconfig get --raw /readyz`", v.Cluster.Name, v.Cluster.Namespace),
			"If it responds to you and not to the managers, check networks and proxies between the management cluster and the endpoint",
			"If it does not respond, check the load balancer and the machines of the control plane: API servers do not work without etcd quorum")}
}

// unreachable returns the condition that reports that the workload cluster does not respond, or nil.
func (v *view) unreachable() *tree.Condition {
	for _, h := range v.Objects.Of(tree.MachineHealthCheckKind, v.Cluster) {
		if c := failing(h, clusterv1.RemediationAllowedV1Beta1Condition); c != nil &&
			c.Reason == clusterv1.WorkloadClusterUnreachableV1Beta1Reason {
			return c
		}
	}
	plane := v.controlPlane()
	if c := failing(plane, controlplanev1.ControlPlaneComponentsHealthyV1Beta1Condition); c != nil &&
		c.Reason == controlplanev1.ControlPlaneComponentsInspectionFailedV1Beta1Reason {
		return c
	}
	if c := failing(plane, controlplanev1.EtcdClusterHealthyV1Beta1Condition); c != nil &&
		c.Reason == controlplanev1.EtcdClusterInspectionFailedV1Beta1Reason {
		return c
	}
	var first *tree.Condition
	for _, m := range v.machines {
		if tree.Text(m, "status", "nodeRef", "name") == "" {
			continue
		}
		c := failing(m, clusterv1.MachineNodeHealthyV1Beta1Condition)
		if c == nil || c.Reason != clusterv1.NodeInspectionFailedV1Beta1Reason {
			return nil
		}
		if first == nil {
			first = c
		}
	}
	return first
}

// deletions finds what holds Machines that are being deleted.
func (v *view) deletions() []Cause {
	var list []Cause
	for _, m := range v.machines {
		if m.GetDeletionTimestamp() == nil {
			continue
		}
		if c := v.deletion(m); c != nil && c.State == Blocked {
			list = append(list, *c)
		}
	}
	return list
}

// deletion returns what a Machine that is being deleted waits for, in the order of its controller; nil if that is only its
// infrastructure.
func (v *view) deletion(m *unstructured.Unstructured) *Cause {
	if c := failing(m, clusterv1.PreDrainDeleteHookSucceededV1Beta1Condition); c != nil {
		return v.hooks(m, c, clusterv1.PreDrainDeleteHookAnnotationPrefix)
	}
	if c := failing(m, clusterv1.DrainingSucceededV1Beta1Condition); c != nil && c.Message != "" {
		stuck := strings.Contains(c.Message, "do not terminate")
		if blocked := strings.Contains(c.Message, "cannot be evicted"); blocked || stuck || severe(c) {
			advice := "Run more replicas of the application, or relax its PodDisruptionBudget"
			if stuck && !blocked {
				advice = "Find out what keeps the Pods: their finalizers, or a kubelet that does not respond"
			}
			cause := v.cause(DrainBlocked, Blocked, m, c, "the Node cannot be drained: "+c.Message).
				do(fmt.Sprintf("In the workload cluster, see `kubectl get poddisruptionbudgets -A` and "+
					"`kubectl get pods -A --field-selector spec.nodeName=%s`", tree.Text(m, "status", "nodeRef", "name")),
					advice,
					fmt.Sprintf("To delete the Machine without draining: `kubectl annotate machine %s -n %s %s=`, or set spec.nodeDrainTimeout",
						m.GetName(), m.GetNamespace(), clusterv1.ExcludeNodeDrainingAnnotation))
			return &cause
		}
		cause := v.cause(Draining, Progressing, m, c, c.Message)
		return &cause
	}
	if c := failing(m, clusterv1.VolumeDetachSucceededV1Beta1Condition); c != nil {
		cause := v.cause(VolumesAttached, Blocked, m, c, "volumes are attached to its Node: "+text(c)).
			do(fmt.Sprintf("In the workload cluster, see `kubectl get volumeattachments`, and the Pods that use the volumes on Node %s",
				tree.Text(m, "status", "nodeRef", "name")),
				fmt.Sprintf("To delete the Machine without waiting: `kubectl annotate machine %s -n %s %s=`, or set spec.nodeVolumeDetachTimeout",
					m.GetName(), m.GetNamespace(), clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation))
		return &cause
	}
	if c := failing(m, clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition); c != nil {
		return v.hooks(m, c, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
	}
	if c := failing(m, clusterv1.MachineNodeHealthyV1Beta1Condition); c != nil && c.Reason == clusterv1.DeletionFailedV1Beta1Reason {
		cause := v.cause(NodeNotDeleted, Blocked, m, c, "its Node cannot be deleted: "+text(c))
		return &cause
	}
	return nil
}

// joins reports whether a Machine has no Node yet.
func joins(m *unstructured.Unstructured) bool {
	return m.GetDeletionTimestamp() == nil && tree.Text(m, "status", "nodeRef", "name") == ""
}

// hooks returns the hooks of a Machine that hold its deletion: those of users before that of its control plane.
func (v *view) hooks(m *unstructured.Unstructured, c *tree.Condition, prefix string) *Cause {
	var list []string
	etcd := false
	for key, owner := range m.GetAnnotations() {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if key == controlplanev1.PreTerminateHookCleanupAnnotation {
			etcd = true
			continue
		}
		if owner != "" {
			key += " (owner " + owner + ")"
		}
		list = append(list, key)
	}
	slices.Sort(list)
	if len(list) == 0 && etcd {
		state := Blocked
		if slices.ContainsFunc(v.machines, func(m *unstructured.Unstructured) bool { return isControlPlane(m) && joins(m) }) {
			state = Progressing
		}
		cause := v.cause(EtcdMemberHeld, state, m, c, c.Message).
			do("The Machine stays until its etcd member can be removed without losing the quorum: "+
				"repair or replace the other control plane Machines first",
				fmt.Sprintf("See the etcd members: `clusterctl describe cluster %s -n %s --show-conditions KubeadmControlPlane`",
					v.Cluster.Name, v.Cluster.Namespace),
				fmt.Sprintf("Only if none of them can be repaired, and none can join, give up the member: `kubectl annotate machine %s -n %s %s-`",
					m.GetName(), m.GetNamespace(), controlplanev1.PreTerminateHookCleanupAnnotation))
		return &cause
	}
	if len(list) == 0 {
		return nil // The Machine has just been released.
	}
	cause := v.cause(DeletionHook, Blocked, m, c,
		"its deletion waits until annotation "+strings.Join(list, ", ")+" is removed by the program that set it").
		do("Find the program that sets the annotation, and see why it does not remove it",
			fmt.Sprintf("Only if that program no longer exists, remove it: `kubectl annotate machine %s -n %s %s-`",
				m.GetName(), m.GetNamespace(), strings.Fields(list[0])[0]))
	return &cause
}

// restricted finds MachineHealthChecks that do not remediate.
func (v *view) restricted() []Cause {
	var list []Cause
	for _, h := range v.Objects.Of(tree.MachineHealthCheckKind, v.Cluster) {
		if c := failing(h, clusterv1.RemediationAllowedV1Beta1Condition); c != nil &&
			(c.Reason == clusterv1.TooManyUnhealthyV1Beta1Reason || c.Reason == clusterv1.FleetUnhealthyV1Beta1Reason) && v.marked(h) {
			list = append(list, v.cause(RemediationRestricted, Blocked, h, c, c.Message).
				do("Find what the Machines that are not healthy have in common, such as a zone, a network or an image: "+
					"`kubectl get machines -n "+v.Cluster.Namespace+"`",
					fmt.Sprintf("To have some of them replaced regardless: `kubectl annotate machine NAME -n %s %s=`",
						v.Cluster.Namespace, clusterv1.RemediateMachineAnnotation)))
		}
		for _, t := range []clusterv1.ConditionType{
			clusterv1.ExternalRemediationTemplateAvailableV1Beta1Condition, clusterv1.ExternalRemediationRequestAvailableV1Beta1Condition,
		} {
			if c := failing(h, t); c != nil {
				list = append(list, v.cause(RemediationTemplate, Blocked, h, c, why(c)).
					do("Create the template of spec.remediationTemplate, and install its provider"))
			}
		}
	}
	return list
}

// marked reports whether a check found unhealthy Machines. The limit concerns healthy and starting Machines, too, so that it may be
// exceeded although there is nothing to remediate.
func (v *view) marked(check *unstructured.Unstructured) bool {
	targets, _, _ := unstructured.NestedStringSlice(check.Object, "status", "targets")
	expected, _, _ := unstructured.NestedInt64(check.Object, "status", "expectedMachines")
	truncated := len(targets) == 0 || int64(len(targets)) < expected
	return slices.ContainsFunc(v.machines, func(m *unstructured.Unstructured) bool {
		return failing(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition) != nil && (truncated || slices.Contains(targets, m.GetName()))
	})
}

// unhealthy finds Machines whose remediation is stuck, and unhealthy Nodes, etcd members and control plane components.
func (v *view) unhealthy() []Cause {
	if v.unreachable() != nil {
		return nil // What is known about Nodes is stale.
	}
	var list []Cause
	inMachines := false
	for _, m := range v.machines {
		if m.GetDeletionTimestamp() != nil || tree.Text(m, "status", "nodeRef", "name") == "" {
			continue
		}
		if c := v.health(m); c != nil {
			list = append(list, *c)
			inMachines = inMachines || isControlPlane(m)
		}
	}
	if inMachines {
		return list // The control plane repeats what its Machines report.
	}
	plane := v.controlPlane()
	for _, t := range []clusterv1.ConditionType{
		controlplanev1.EtcdClusterHealthyV1Beta1Condition, controlplanev1.ControlPlaneComponentsHealthyV1Beta1Condition,
	} {
		if c := failing(plane, t); severe(c) {
			return append([]Cause{v.cause(ControlPlaneUnhealthy, Blocked, plane, c, why(c)).
				do("In the workload cluster, see `kubectl get pods -n kube-system -l tier=control-plane -o wide`")}, list...)
		}
	}
	return list
}

// noNodeReady reports whether every Machine's Node reports that it is not ready, as without a pod network.
func (v *view) noNodeReady() bool {
	return !slices.ContainsFunc(v.machines, func(m *unstructured.Unstructured) bool {
		c := failing(m, clusterv1.MachineNodeHealthyV1Beta1Condition)
		return c == nil || c.Status != "False"
	})
}

// withoutQuorum reports whether the etcd members on half or more of the control plane Machines are known not to be healthy.
func (v *view) withoutQuorum() bool {
	all, broken := 0, 0
	for _, m := range v.machines {
		if _, is := m.GetLabels()[clusterv1.MachineControlPlaneLabel]; !is {
			continue
		}
		all++
		if c := tree.ConditionOf(m, string(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition)); c != nil && c.Status != "True" {
			broken++
		}
	}
	return all > 0 && 2*broken >= all
}

// health returns what is wrong with a Machine that has a Node.
func (v *view) health(m *unstructured.Unstructured) *Cause {
	replace := fmt.Sprintf("To replace the Machine: `kubectl delete machine %s -n %s`", m.GetName(), m.GetNamespace())
	node := fmt.Sprintf("In the workload cluster, see `kubectl describe node %s`", tree.Text(m, "status", "nodeRef", "name"))
	if c := failing(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition); c != nil && c.Message != "" {
		cause := v.cause(RemediationBlocked, Blocked, m, c, "it is not healthy, and is not replaced: "+c.Message)
		if check := failing(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition); check != nil {
			cause.Message += ". " + why(check)
		}
		cause = cause.do(node)
		return &cause
	}
	if c := failing(m, clusterv1.MachineNodeHealthyV1Beta1Condition); c != nil {
		cause := v.cause(NodeUnhealthy, Blocked, m, c,
			strings.TrimSuffix("its Node "+tree.Text(m, "status", "nodeRef", "name")+" is not healthy: "+c.Message, ": ")).do(node)
		if v.noNodeReady() {
			cause = cause.do("No Node of the cluster is ready: install a pod network (CNI), or see why its Pods do not run: " +
				"`kubectl get pods -A` in the workload cluster")
		} else {
			cause = cause.do(replace)
		}
		return &cause
	}
	for _, t := range []clusterv1.ConditionType{
		controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition, controlplanev1.MachineEtcdPodHealthyV1Beta1Condition,
		controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition, controlplanev1.MachineControllerManagerPodHealthyV1Beta1Condition,
		controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition,
	} {
		if c := failing(m, t); severe(c) {
			cause := v.cause(ControlPlaneUnhealthy, Blocked, m, c, why(c)).
				do(fmt.Sprintf("In the workload cluster, see `kubectl get pods -n kube-system --field-selector spec.nodeName=%s`",
					tree.Text(m, "status", "nodeRef", "name")))
			if v.withoutQuorum() {
				cause = cause.do("etcd has no quorum, so do not delete this Machine: its data may be the only data. If the others do not start, " +
					"create a ControlPlaneRecovery, or a ControlPlaneRestore from a backup (provider: `clusterctl init --addon fleet`)")
			} else {
				cause = cause.do(replace)
			}
			return &cause
		}
	}
	return nil
}
