package record

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// stripped replaces values. It is valid base64, as the data of Secrets has to be.
const stripped = "stripped"

// Strip replaces what may be secret in an object: data of Secrets, and of all others contents of files, passwords, tokens and private
// keys, at any depth. Equal objects stay equal. What kubectl has recorded of an object's previous content is removed.
func Strip(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if data, found := annotations[clusterv1.ConversionDataAnnotation]; found {
		annotations[clusterv1.ConversionDataAnnotation] = stripText(data)
	}
	if len(annotations) > 0 || o.GetAnnotations() != nil {
		o.SetAnnotations(annotations)
	}
	for field, value := range o.Object {
		switch {
		case field == "metadata":
		case o.GetKind() == "Secret" && slices.Contains([]string{"data", "stringData"}, field):
			o.Object[field] = everything(value)
		default:
			o.Object[field] = strip(value)
		}
	}
}

// secret are fields whose values are replaced, in lower case: those of kubeadm's and cloud-init's configuration, and what others call so.
func secret(field string) bool {
	field = strings.ToLower(field)
	return slices.Contains([]string{"content", "passwd", "certificatekey"}, field) ||
		strings.Contains(field, "password") || strings.HasSuffix(field, "token") || strings.HasSuffix(field, "privatekey")
}

func strip(value any) any {
	switch v := value.(type) {
	case map[string]any:
		name, _ := v["name"].(string) // of a variable
		for field, of := range v {
			text, isText := of.(string)
			if isText && text != "" && (secret(field) || field == "value" && secret(name)) {
				v[field] = stripped
			} else {
				v[field] = strip(of)
			}
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	}
	return value
}

// everything replaces all values of a map.
func everything(value any) any {
	data, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	for key := range data {
		data[key] = stripped
	}
	return data
}

// stripText strips an object in JSON; what cannot be read is replaced as a whole.
func stripText(text string) string {
	var value map[string]any
	if json.Unmarshal([]byte(text), &value) != nil {
		return stripped
	}
	content, err := json.Marshal(strip(value))
	if err != nil {
		return stripped
	}
	return string(content)
}
