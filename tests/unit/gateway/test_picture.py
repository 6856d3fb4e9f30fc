"""What a picture is, decided by opening it."""

from io import BytesIO

import pytest

from gateway.files.picture import MAX_SIDE, PictureFault, PictureKind, inspect_picture_blocking
from tests.support.pictures import claim, picture, png


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_whole_picture_is_what_its_content_says(form: str) -> None:
    expected = PictureKind(f"image/{form.lower()}")
    assert inspect_picture_blocking(BytesIO(picture(form))) == expected
    assert inspect_picture_blocking(BytesIO(picture(form, MAX_SIDE, 1))) == expected


def test_the_picture_of_a_phone_with_others_behind_it_is_a_jpeg() -> None:
    data = BytesIO(picture("MPO", frames=2))
    assert inspect_picture_blocking(data) == PictureKind("image/jpeg")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (png()[:29], "other"),
        (picture("PNG", 60, 60)[:-20], "broken"),
        (picture("JPEG", 60, 60)[:-40], "broken"),
        (picture("WEBP", 60, 60)[:-40], "broken"),
        (picture("GIF", frames=2), "animated"),
        (picture("PNG", frames=2), "animated"),
        (picture("WEBP", frames=2), "animated"),
        (picture("PNG", MAX_SIDE + 1, 1), "side"),
        (claim(7_000, 7_000), "side"),
        (claim(2_000_000_000, 2_000_000_000), "side"),
        (picture("BMP"), "other"),
        (b"not a picture", "other"),
        (b"", "other"),
    ],
)
def test_what_a_service_would_refuse_is_named(data: bytes, fault: PictureFault) -> None:
    assert inspect_picture_blocking(BytesIO(data)) == fault
