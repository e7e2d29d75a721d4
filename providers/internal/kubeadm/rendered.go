package kubeadm

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

// Defined reports whether a part of a KubeadmConfigSpec is set, also if what is in it is empty.
func Defined[T any](part T) bool { return !reflect.ValueOf(&part).Elem().IsZero() }

// RenderedCluster returns a ClusterConfiguration as kubeadm's v1beta3 has it, without apiVersion and kind, and without what comes from
// the Cluster. timeouts are those of the machine, which are a part of it in v1beta3. What only v1beta4 has is left out, see AddV1Beta4:
// kubeadm rejects fields that its version does not have.
func RenderedCluster(config *bootstrapv1.ClusterConfiguration, timeouts bootstrapv1.Timeouts) (map[string]any, error) {
	out := config.DeepCopy()
	out.CertificateValidityPeriodDays, out.CACertificateValidityPeriodDays, out.EncryptionAlgorithm = 0, 0, ""
	for _, c := range []*bootstrapv1.ControlPlaneComponent{&out.APIServer.ControlPlaneComponent, &out.ControllerManager, &out.Scheduler} {
		c.ExtraEnvs = nil
	}
	out.Etcd.Local.ExtraEnvs = nil
	doc, err := document(out)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"apiServer", "controllerManager", "dns", "etcd", "networking", "scheduler"} {
		inner(doc, name)
	}
	for _, name := range []string{"apiServer", "controllerManager", "scheduler"} {
		renderComponent(at(doc, name))
	}
	mapArgs(at(doc, "etcd", "local"), "extraArgs")
	required(at(doc, "etcd", "external"), "caFile", "certFile", "keyFile")
	if seconds := timeouts.ControlPlaneComponentHealthCheckSeconds; seconds != nil {
		at(doc, "apiServer")["timeoutForControlPlane"] = duration(*seconds)
	}
	return doc, nil
}

// AddV1Beta4 adds to a ClusterConfiguration of v1beta4 what v1beta3 does not have: environment variables and validity periods. Environment
// variables that are not set, or an empty list of them, are removed from the document; validity periods that are not set are kept.
func AddV1Beta4(doc map[string]any, config *bootstrapv1.ClusterConfiguration) error {
	for _, part := range []struct {
		path []string
		envs *[]bootstrapv1.EnvVar
	}{
		{[]string{"apiServer"}, config.APIServer.ExtraEnvs},
		{[]string{"controllerManager"}, config.ControllerManager.ExtraEnvs},
		{[]string{"scheduler"}, config.Scheduler.ExtraEnvs},
		{[]string{"etcd", "local"}, config.Etcd.Local.ExtraEnvs},
	} {
		unstructured.RemoveNestedField(doc, append(part.path, "extraEnvs")...)
		if part.envs == nil || len(*part.envs) == 0 {
			continue
		}
		var list []any
		for i := range *part.envs {
			env, err := document(&(*part.envs)[i])
			if err != nil {
				return err
			}
			list = append(list, env)
		}
		if err := unstructured.SetNestedSlice(doc, list, append(part.path, "extraEnvs")...); err != nil {
			return fmt.Errorf("setting environment variables: %w", err)
		}
	}
	if days := config.CertificateValidityPeriodDays; days > 0 {
		doc["certificateValidityPeriod"] = period(days)
	}
	if days := config.CACertificateValidityPeriodDays; days > 0 {
		doc["caCertificateValidityPeriod"] = period(days)
	}
	return nil
}

// period returns days in hours, which is the longest unit of durations.
func period(days int32) string { return (time.Duration(days) * 24 * time.Hour).String() }

func renderComponent(doc map[string]any) {
	mapArgs(doc, "extraArgs")
	volumes, _ := doc["extraVolumes"].([]any)
	for _, item := range volumes {
		volume, _ := item.(map[string]any)
		required(volume, "name", "hostPath", "mountPath")
		dropFalse(volume, "readOnly")
	}
}

// RenderedInit returns an InitConfiguration as kubeadm's v1beta3 has it, see RenderedCluster.
func RenderedInit(config *bootstrapv1.InitConfiguration) (map[string]any, error) {
	out := config.DeepCopy()
	out.NodeRegistration.ImagePullSerial, out.Timeouts = nil, bootstrapv1.Timeouts{}
	for i := range out.BootstrapTokens {
		out.BootstrapTokens[i].TTLSeconds = nil
	}
	doc, err := document(out)
	if err != nil {
		return nil, err
	}
	mapArgs(inner(doc, "nodeRegistration"), "kubeletExtraArgs")
	inner(doc, "localAPIEndpoint")
	tokens, _ := doc["bootstrapTokens"].([]any)
	for i, token := range config.BootstrapTokens {
		if fields, ok := tokens[i].(map[string]any); ok && token.TTLSeconds != nil {
			fields["ttl"] = duration(*token.TTLSeconds)
		}
	}
	return doc, nil
}

// RenderedJoin returns a JoinConfiguration as kubeadm's v1beta3 has it, see RenderedCluster.
func RenderedJoin(config *bootstrapv1.JoinConfiguration) (map[string]any, error) {
	out := config.DeepCopy()
	out.NodeRegistration.ImagePullSerial, out.Timeouts = nil, bootstrapv1.Timeouts{}
	doc, err := document(out)
	if err != nil {
		return nil, err
	}
	mapArgs(inner(doc, "nodeRegistration"), "kubeletExtraArgs")
	discovery := inner(doc, "discovery")
	token := at(discovery, "bootstrapToken")
	required(token, "token")
	dropFalse(token, "unsafeSkipCAVerification")
	required(at(discovery, "file"), "kubeConfigPath")
	if seconds := config.Timeouts.TLSBootstrapSeconds; seconds != nil {
		discovery["timeout"] = duration(*seconds)
	}
	if out.ControlPlane != nil {
		inner(inner(doc, "controlPlane"), "localAPIEndpoint")
	}
	return doc, nil
}

func document(config any) (map[string]any, error) {
	doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", config, err)
	}
	return doc, nil
}

// at returns an object in a document, or nil.
func at(doc map[string]any, path ...string) map[string]any {
	for _, name := range path {
		doc, _ = doc[name].(map[string]any)
	}
	return doc
}

// inner returns an object in a document. If it is missing, it is added: v1beta3 has it, even if it is empty.
func inner(doc map[string]any, name string) map[string]any {
	if at(doc, name) == nil {
		doc[name] = map[string]any{}
	}
	return at(doc, name)
}

// required adds texts to an object, unless that is nil. v1beta3 has them, even if they are empty.
func required(doc map[string]any, names ...string) {
	for _, name := range names {
		if _, ok := doc[name]; doc != nil && !ok {
			doc[name] = ""
		}
	}
}

// dropFalse removes a field that is false, which is the same as none, and which v1beta3 does not have.
func dropFalse(doc map[string]any, name string) {
	if doc[name] == false {
		delete(doc, name)
	}
}

// mapArgs changes a list of flags to a map. The last flag of a name counts.
func mapArgs(component map[string]any, field string) {
	list, ok := component[field].([]any)
	if !ok {
		return
	}
	args := map[string]any{}
	for _, item := range list {
		arg, _ := item.(map[string]any)
		name, _ := arg["name"].(string)
		value, _ := arg["value"].(string)
		args[name] = value
	}
	component[field] = args
}

// duration returns seconds as in 1m30s.
func duration(seconds int32) string { return (time.Duration(seconds) * time.Second).String() }
