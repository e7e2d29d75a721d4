package patches

import (
	"bytes"
	"fmt"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// varying are functions of Sprig whose result is not determined by their arguments, beyond those that
// Sprig itself leaves out of its hermetic set. With them a topology would never come to rest.
var varying = []string{
	"ago", "bcrypt", "encryptAES", "genCA", "genCAWithKey", "genPrivateKey", "genSelfSignedCert",
	"genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htpasswd", "randInt", "shuffle",
}

// functions are those that templates may use.
func functions() template.FuncMap {
	out := sprig.HermeticTxtFuncMap()
	for _, name := range varying {
		delete(out, name)
	}
	return out
}

// parser parses templates; it holds the functions, which are costly to collect.
type parser struct{ root *template.Template }

func newParser() parser {
	return parser{root: template.New("").Funcs(functions())}
}

// parse reads a template. Variables without a value are allowed in it: they are false for "if" and
// render as "<no value>".
func (p parser) parse(source string) (*template.Template, error) {
	clone, err := p.root.Clone()
	if err != nil {
		return nil, err
	}
	parsed, err := clone.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("not a valid Go template: %w", err)
	}
	return parsed, nil
}

// maxRendered is the most that a template may render, in bytes: what etcd takes for a whole object.
const maxRendered = 1 << 20

var errTooLong = fmt.Errorf("renders more than %d bytes", maxRendered)

// limited is a buffer that refuses to grow without end.
type limited struct{ bytes.Buffer }

// Write appends, or fails with errTooLong.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxRendered {
		return 0, errTooLong
	}
	return l.Buffer.Write(p)
}

func render(t *template.Template, values map[string]any) ([]byte, error) {
	var out limited
	if err := t.Execute(&out, values); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// parseValue reads what a template rendered as YAML, of which JSON is a part. Whole numbers stay whole.
func parseValue(rendered []byte) (any, error) {
	encoded, err := yaml.YAMLToJSON(rendered)
	if err != nil {
		return nil, fmt.Errorf("the template rendered something that is not YAML: %w", err)
	}
	return parseJSON(encoded)
}

func parseJSON(encoded []byte) (any, error) {
	var out any
	if err := utiljson.Unmarshal(encoded, &out); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return out, nil
}
