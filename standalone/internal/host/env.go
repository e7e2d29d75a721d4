package host

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podIP is the address of everything in this process.
const podIP = "127.0.0.1"

// environment computes a container's variables and arguments the way a kubelet does: envFrom first, then env in order,
// $(NAME) is replaced with variables set before. Missing optional sources are skipped; missing required ones are errors.
func environment(ctx context.Context, reader client.Reader, p *plan) (env map[string]string, args []string, err error) {
	env = map[string]string{}
	for _, from := range p.container.EnvFrom {
		values, err := allKeys(ctx, reader, p.pod.Namespace, from)
		if err != nil {
			return nil, nil, err
		}
		for name, value := range values {
			env[from.Prefix+name] = value
		}
	}
	for _, variable := range p.container.Env {
		value := expansion.Expand(variable.Value, expansion.MappingFuncFor(env))
		if variable.ValueFrom != nil {
			found := false
			if value, found, err = valueFrom(ctx, reader, p, variable.ValueFrom); err != nil {
				return nil, nil, fmt.Errorf("environment variable %s: %w", variable.Name, err)
			}
			if !found {
				continue
			}
		}
		env[variable.Name] = value
	}
	// The first element of the command is the binary in the image; the others are arguments.
	raw := p.container.Args
	if len(p.container.Command) > 1 {
		raw = append(append([]string{}, p.container.Command[1:]...), raw...)
	}
	for _, arg := range raw {
		args = append(args, expansion.Expand(arg, expansion.MappingFuncFor(env)))
	}
	return env, args, nil
}

// allKeys reads a whole ConfigMap or Secret.
func allKeys(ctx context.Context, reader client.Reader, namespace string, from corev1.EnvFromSource) (map[string]string, error) {
	if ref := from.ConfigMapRef; ref != nil {
		values, _, err := configMap(ctx, reader, namespace, ref.Name, ptr.Deref(ref.Optional, false))
		return values, err
	}
	if ref := from.SecretRef; ref != nil {
		values, _, err := secret(ctx, reader, namespace, ref.Name, ptr.Deref(ref.Optional, false))
		return values, err
	}
	return nil, nil
}

// valueFrom reads one variable's source. It returns false for a missing optional source.
func valueFrom(ctx context.Context, reader client.Reader, p *plan, from *corev1.EnvVarSource) (string, bool, error) {
	pod := p.pod
	switch {
	case from.FieldRef != nil:
		value, err := fieldRef(pod, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		// A limit that is not set is 0: nothing limits the components of this process.
		value, err := resource.ExtractContainerResourceValue(from.ResourceFieldRef, &p.container)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		values, found, err := configMap(ctx, reader, pod.Namespace, ref.Name, ptr.Deref(ref.Optional, false))
		if err != nil || !found {
			return "", false, err
		}
		return oneKey(values, ref.Key, "ConfigMap", ref.Name, ptr.Deref(ref.Optional, false))
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		values, found, err := secret(ctx, reader, pod.Namespace, ref.Name, ptr.Deref(ref.Optional, false))
		if err != nil || !found {
			return "", false, err
		}
		return oneKey(values, ref.Key, "Secret", ref.Name, ptr.Deref(ref.Optional, false))
	default:
		return "", false, fmt.Errorf("unsupported source: use a value, fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef")
	}
}

// fieldRef reads a field of the Pod. Addresses are this process's.
func fieldRef(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return podIP, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

func configMap(ctx context.Context, reader client.Reader, namespace, name string, optional bool) (map[string]string, bool, error) {
	found := &corev1.ConfigMap{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if optional && apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return maps.Clone(found.Data), true, nil
}

func secret(ctx context.Context, reader client.Reader, namespace, name string, optional bool) (map[string]string, bool, error) {
	found := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if optional && apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	values := make(map[string]string, len(found.Data))
	for key, value := range found.Data {
		values[key] = string(value)
	}
	return values, true, nil
}

func oneKey(values map[string]string, key, kind, name string, optional bool) (string, bool, error) {
	value, found := values[key]
	if !found && !optional {
		return "", false, fmt.Errorf("%s %s has no key %q", kind, name, key)
	}
	return value, found, nil
}
