"""An OpenAPI description of a shop, and changed copies of it."""

from __future__ import annotations

import copy
import json
from typing import Any

__all__ = ["SHOP", "URL", "changed", "octets"]

URL = "https://api.example.com/v1/openapi.json"

SHOP: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Orders", "version": "1"},
    "servers": [{"url": "/"}, {"url": "https://eu.api.example/shop/"}],
    "security": [{"account": ["orders:read"]}],
    "paths": {
        "/orders": {
            "get": {
                "operationId": "listOrders",
                "summary": "Your orders",
                "parameters": [
                    {"name": "state", "in": "query", "required": True},
                    {"name": "tag", "in": "query", "explode": False},
                    {"$ref": "#/components/parameters/Trace"},
                    {"name": "Poppy-Session", "in": "header", "required": True},
                    {"name": "Authorization", "in": "header"},
                ],
            },
            "post": {
                "operationId": "order",
                "deprecated": True,
                "requestBody": {"required": True, "content": {"text/plain": {}, "application/json; charset=utf-8": {}}},
                "security": [{"account": ["orders:write", "orders:read"]}, {"key": []}, {}],
            },
        },
        "/orders/{id}/lines/{line}.json": {
            "parameters": [
                {"name": "id", "in": "path", "required": True},
                {"name": "line", "in": "path", "required": True},
            ],
            "servers": [{"url": "https://{region}.api.example", "variables": {"region": {"default": "us"}}}],
            "get": {"operationId": "line", "servers": [{"url": "../lines"}], "security": []},
            "delete": {"operationId": "drop", "parameters": [{"name": "id", "in": "path", "description": "which"}]},
        },
    },
    "components": {
        "parameters": {"Trace": {"name": "X-Trace", "in": "header", "description": "for support"}},
        "securitySchemes": {
            "account": {
                "type": "oauth2",
                "flows": {
                    "authorizationCode": {"scopes": {"orders:read": "See your orders", "orders:write": ""}},
                    "clientCredentials": {"scopes": {"orders:write": "Order for you", "orders:read": "no"}},
                },
            },
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "token": {"type": "http", "scheme": "Bearer"},
            "oidc": {"$ref": "#/components/x-schemes/oidc"},
        },
        "x-schemes": {"oidc": {"type": "openIdConnect"}},
    },
}


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The shop with one value of it changed; None removes it."""
    document = copy.deepcopy(SHOP)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


def octets(document: Any) -> bytes:
    """A document as it comes from the network."""
    return json.dumps(document).encode()
