package httpapi

import (
	"context"
	_ "embed"
	"encoding/json"
)

//go:embed openapi.json
var openAPIDocument []byte

func openAPI(context.Context, *Handler, *call) (answer, error) {
	return answer{body: json.RawMessage(openAPIDocument)}, nil
}
