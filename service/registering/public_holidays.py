"""Public holidays of countries and closing days of stock markets, from which calendars are made."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from datetime import date
from typing import Any

from streams import listed
from streams.tables import CalendarRefused

_CODE = re.compile(r"[A-Z0-9]{2,5}")  # code of a country or a market


def public_holidays(source: Mapping[str, Any], first: int, last: int) -> list[date]:
    """Return the public holidays of a country or subdivision, or the closing days of a stock market.

    The dates are those of all years from ``first`` to ``last``, both included. Raises ``CalendarRefused`` if the
    country or market is unknown.
    """
    import holidays  # noqa: PLC0415 - few commands and requests need it

    if set(source) not in ({"country"}, {"country", "subdivision"}, {"market"}):
        raise _refused("write the member country, perhaps with subdivision, or the member market")
    years, part = range(first, last + 1), source.get("subdivision")
    part = None if part is None else str(part)
    if not _CODE.fullmatch(str(source.get("market", source.get("country")))):
        raise _unknown(source)
    try:
        with warnings.catch_warnings(action="ignore"):  # the library warns about years without holidays
            if "market" in source:
                return list(holidays.financial_holidays(source["market"], years=years))
            return list(holidays.country_holidays(source["country"], subdiv=part, years=years))
    except (NotImplementedError, AttributeError, TypeError) as error:  # raised for unknown names
        raise _unknown(source) from error


def _unknown(source: Mapping[str, Any]) -> CalendarRefused:
    """Return an error that lists the valid codes. The library's other lists would import many modules."""
    import holidays  # noqa: PLC0415 - few commands and requests need it

    codes = holidays.registry.EntityLoader
    country = str(source.get("country"))
    if "market" in source:
        hint = f"markets are {listed(sorted(codes.get_financial_codes()))}"
    elif source.get("subdivision") is not None and country in codes.get_country_codes():
        subdivisions = sorted(holidays.country_holidays(country).subdivisions)
        hint = f"its subdivisions are {listed(subdivisions)}" if subdivisions else "the country has no subdivisions"
    else:
        hint = f"countries are {listed(sorted(codes.get_country_codes(include_aliases=False)))}"
    return _refused(f"{dict(source)} is unknown; {hint}")


def _refused(reason: str) -> CalendarRefused:
    return CalendarRefused(f"holidays: {reason}", field="holidays")
